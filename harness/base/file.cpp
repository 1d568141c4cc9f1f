#include "base/file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/regular_file.h"

namespace peakbench::files {

void write_all(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = TEMP_FAILURE_RETRY(write(descriptor, bytes.data(), bytes.size()));
    if (written < 0) cannot_write(path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_file_atomically(const std::string& path, std::string_view bytes, bool durable) {
  AtomicFile file(path);
  file.write(bytes);
  file.finish(durable);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  return names;
}

std::string why_hidden(const std::string& path) {
  std::error_code error;
  return std::filesystem::status(path, error).type() == std::filesystem::file_type::none
             ? error.message()
             : "";
}

bool holds_nothing(const std::string& path) {
  std::error_code error;
  return !is_there(path) || (is_folder(path) && std::filesystem::is_empty(path, error) && !error);
}

std::string why_no_file(const std::string& path) {
  std::error_code ignored;
  switch (std::filesystem::status(path, ignored).type()) {
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::fifo:
      return "a named pipe";
    case std::filesystem::file_type::socket:
      return "a socket";
    case std::filesystem::file_type::block:
    case std::filesystem::file_type::character:
      return "a device";
    default:
      return "";
  }
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (is_folder(path)) return;
  throw HostError(fmt::format("cannot make the folder {}: {}. Choose another with --out.", path,
                              error ? error.message() : "a file of that name is in the way"));
}

void remove_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::remove(path, error) && error)
    throw HostError(fmt::format("{}: cannot delete: {}. Choose another folder with --out.", path,
                                error.message()));
}

void write_json_file(const std::string& path, const nlohmann::ordered_json& json) {
  write_file_atomically(path, json_text(json));
}

void write_json_file(const std::string& path, const nlohmann::json& json) {
  write_file_atomically(path, json_text(json));
}

nlohmann::json read_json_file(const std::string& path) {
  std::string text;
  try {
    text = read_regular_file(path, kMostRunText);
  } catch (const HostError&) {
    throw;
  } catch (const ConfigError& error) {
    throw RunFileError(error.what());
  }
  try {
    return parse_json(text);
  } catch (const RunFileError& error) {
    throw RunFileError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace peakbench::files
