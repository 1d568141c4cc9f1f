#include "files/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "errors/errors.h"
#include "errors/host_limits.h"

namespace peakbench::files {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& problem) {
  throw ConfigError(fmt::format("{}: {}", path, problem));
}

[[noreturn]] void fail_read(const std::string& path, int error) {
  const auto text =
      fmt::format("{}: cannot be read: {}", path,
                  is_host_error(error) ? host_error_text(error) : std::strerror(error));
  if (is_host_error(error)) throw HostError(text);
  throw ConfigError(text);
}

class Reader {
 public:
  // A pipe without a writer would be waited for without O_NONBLOCK.
  explicit Reader(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (descriptor_ < 0 && errno == ENXIO) refuse_kind();  // a socket
    if (descriptor_ < 0) fail_read(path_, errno);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { close(descriptor_); }

  // Its size; some of /proc say 0 and hold more.
  std::size_t check_kind() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) fail_read(path_, errno);
    if (S_ISDIR(status.st_mode)) fail(path_, "is a folder, not a file");
    if (!S_ISREG(status.st_mode)) refuse_kind();
    return static_cast<std::size_t>(status.st_size);
  }

  // Up to `bytes` more at the end of `text`; false at the file's end.
  bool append(std::string& text, std::size_t bytes) const {
    const auto before = text.size();
    text.resize(before + bytes);
    ssize_t got = 0;
    do {
      got = read(descriptor_, text.data() + before, bytes);
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail_read(path_, errno);
    text.resize(before + static_cast<std::size_t>(got));
    return got > 0;
  }

 private:
  [[noreturn]] void refuse_kind() const {
    fail(path_, "is a pipe or a device; expected a regular file: write the content to one");
  }

  const std::string& path_;
  int descriptor_;
};

}  // namespace

std::string read_regular_file(const std::string& path, std::size_t most_bytes) {
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  const Reader reader(path);
  const auto size = reader.check_kind();
  std::string text;
  const auto refuse_large = [&](std::size_t bytes) {
    if (bytes <= most_bytes) return;
    fail(path, fmt::format("has more than {} bytes, the most that such a file may have; is it "
                           "another file?",
                           most_bytes));
  };
  refuse_large(size);
  text.reserve(size + 1);
  while (reader.append(text, std::max(kChunk, size + 1 - std::min(size, text.size())))) {
    refuse_large(text.size());
  }
  return text;
}

}  // namespace peakbench::files
