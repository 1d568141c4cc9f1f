#include "launch/worker_result.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "errors/host_limits.h"
#include "files/regular_file.h"
#include "json/bound_texts.h"
#include "json/parse_json.h"
#include "text/bounded_text.h"

namespace peakbench::launch {
namespace {

// Nullopt where there is none.
std::optional<std::string> text_at(const std::string& path) {
  files::RegularFile file(path, files::RegularFile::Links::kRefuse);
  if (file.error() == ENOENT) return std::nullopt;
  if (file.error() != 0) throw std::system_error(file.error(), std::generic_category());
  if (!file.is_open()) throw std::runtime_error("is no file");
  if (file.size() > kMostResultBytes)
    throw std::runtime_error(fmt::format("holds {} bytes, more than a result takes", file.size()));
  std::string text(file.size(), '\0');
  text.resize(file.read(text.data(), text.size()));
  return text;
}

result::WorkerResult parsed(const std::string& text) {
  try {
    auto json = parse_json(text);
    bound_texts(json);
    return result::worker_result_from_json(json);
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("holds {} bytes: {}", text.size(), error.what()));
  }
}

}  // namespace

void read_result(const std::string& path, Evidence& evidence) {
  try {
    if (const auto text = text_at(path)) evidence.written = parsed(*text);
  } catch (const std::system_error& error) {
    evidence.read_error = fmt::format("the worker's result cannot be read: {}: {}", path,
                                      host_error_text(error.code().value()));
  } catch (const std::exception& error) {
    evidence.read_problem = fmt::format("{} {}", std::filesystem::path(path).filename().string(),
                                        bounded(error.what()));
  }
}

}  // namespace peakbench::launch
