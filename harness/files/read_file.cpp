#include "files/read_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "errors/errors.h"
#include "errors/host_limits.h"
#include "files/regular_file.h"

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

[[noreturn]] void refuse(const std::string& path, const RegularFile& file) {
  if (file.error() != 0) fail_read(path, file.error());
  if (file.is_folder()) fail(path, "is a folder, not a file");
  fail(path, "is a pipe or a device; expected a regular file: write the content to one");
}

// Up to `bytes` more at the end of `text`; false at the file's end.
bool append(RegularFile& file, std::string& text, std::size_t bytes) {
  const auto before = text.size();
  text.resize(before + bytes);
  const auto got = file.read(text.data() + before, bytes);
  text.resize(before + got);
  return got > 0;
}

}  // namespace

std::string read_regular_file(const std::string& path, std::size_t most_bytes) {
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  RegularFile file(path);
  if (!file.is_open()) refuse(path, file);
  std::string text;
  const auto refuse_large = [&](std::size_t bytes) {
    if (bytes <= most_bytes) return;
    fail(path, fmt::format("has more than {} bytes, the most that such a file may have; is it "
                           "another file?",
                           most_bytes));
  };
  const auto size = file.size();
  refuse_large(size);
  text.reserve(size + 1);
  try {
    while (append(file, text, std::max(kChunk, size + 1 - std::min(size, text.size()))))
      refuse_large(text.size());
  } catch (const std::system_error& error) {
    fail_read(path, error.code().value());
  }
  return text;
}

}  // namespace peakbench::files
