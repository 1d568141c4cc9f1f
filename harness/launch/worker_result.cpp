#include "launch/worker_result.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "errors/host_limits.h"
#include "json/bound_texts.h"
#include "json/parse_json.h"
#include "text/bounded_text.h"

namespace peakbench::launch {
namespace {

struct File {
  explicit File(const std::string& path)
      : number(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (number >= 0) close(number);
  }
  const int number;
};

std::string whole_text(int file, std::size_t size) {
  std::string text(size, '\0');
  std::size_t at = 0;
  while (at < size) {
    const ssize_t count = read(file, text.data() + at, size - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw std::system_error(errno, std::generic_category());
    if (count == 0) break;
    at += static_cast<std::size_t>(count);
  }
  text.resize(at);
  return text;
}

// Nullopt where there is none.
std::optional<std::string> text_at(const std::string& path) {
  const File file(path);
  if (file.number < 0 && errno == ENOENT) return std::nullopt;
  struct stat facts {};
  if (file.number < 0 && errno != ELOOP) throw std::system_error(errno, std::generic_category());
  if (file.number < 0 || fstat(file.number, &facts) != 0 || !S_ISREG(facts.st_mode))
    throw std::runtime_error("is no file");
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size > kMostResultBytes)
    throw std::runtime_error(fmt::format("holds {} bytes, more than a result takes", size));
  return whole_text(file.number, size);
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
