#include "readers/readers.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "base/errors.h"

namespace peakbench::hostile {

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all{{"suite", read_suite_file},
                                       {"run", read_run_file},
                                       {"trace", read_trace_file},
                                       {"history", read_history_file},
                                       {"manifest", read_manifest_file},
                                       {"safetensors", read_safetensors_file},
                                       {"card", read_card},
                                       {"template", read_template},
                                       {"policy", read_policy}};
  return all;
}

const Reader* find_reader(const std::string& name) {
  for (const auto& reader : readers())
    if (name == reader.name) return &reader;
  return nullptr;
}

bool is_taken(const Reader& reader, const std::string& path) {
  try {
    reader.read(path);
    return true;
  } catch (const ConfigError&) {
  } catch (const PluginError&) {
  } catch (const TraceError&) {
  }
  return false;
}

Scratch::Scratch() {
  const bool in_memory = std::filesystem::is_directory("/dev/shm");
  folder_ = in_memory ? "/dev/shm/peakbench-XXXXXX"
                      : (std::filesystem::temp_directory_path() / "peakbench-XXXXXX").string();
  if (mkdtemp(folder_.data()) == nullptr) throw std::runtime_error(folder_ + ": cannot be made");
  path_ = folder_ + "/input";
}

Scratch::~Scratch() { std::filesystem::remove_all(folder_); }

void Scratch::write(const char* bytes, std::size_t size) const {
  std::ofstream file(path_, std::ios::binary | std::ios::trunc);
  file.write(bytes, static_cast<std::streamsize>(size));
  if (!file.flush()) throw std::runtime_error(path_ + ": cannot be written");
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace peakbench::hostile
