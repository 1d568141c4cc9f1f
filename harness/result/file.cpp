#include "result/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "result/errors.h"
#include "result/host_limits.h"

namespace peakbench::result {
namespace {

[[noreturn]] void fail_write(const std::string& path, int error) {
  throw HostError(fmt::format("{}: cannot write: {}", path, host_error_text(error)));
}

// Closed on every way out; the temporary file goes with it unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target)
      : target_(target), path_(fmt::format("{}.tmp-{}", target, getpid())) {
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail_write(target_, errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!renamed_) unlink(path_.c_str());
  }

  void write(std::string_view bytes) { write_all(descriptor_, bytes, target_); }

  void rename_to_target() {
    if (fsync(descriptor_) != 0) fail_write(target_, errno);
    const int closed = close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail_write(target_, errno);
    if (rename(path_.c_str(), target_.c_str()) != 0) fail_write(target_, errno);
    renamed_ = true;
  }

 private:
  std::string target_, path_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

// The rename itself reaches the disk. A file system that cannot do this is no reason to fail.
void flush_folder_of(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw RunFileError(fmt::format("{}: cannot read: {}", path, std::strerror(errno)));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad())
    throw RunFileError(fmt::format("{}: cannot read: {}", path, std::strerror(errno)));
  return std::move(text).str();
}

std::string line_and_column(const std::string& text, std::size_t byte) {
  const std::string_view before(text.data(), std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  const auto column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

[[noreturn]] void fail_parse(const std::string& path, const std::string& text,
                             const nlohmann::json::parse_error& error) {
  const auto last = text.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) throw RunFileError(fmt::format("{}: the file is empty", path));
  if (error.byte > last + 1) {
    throw RunFileError(
        fmt::format("{}: cut short: the JSON ends unfinished after {} bytes", path, text.size()));
  }
  throw RunFileError(fmt::format("{}: not JSON: {}", path, line_and_column(text, error.byte)));
}

}  // namespace

void write_all(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_write(path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  TemporaryFile file(path);
  file.write(bytes);
  file.rename_to_target();
  flush_folder_of(path);
}

void write_json_file(const std::string& path, const nlohmann::ordered_json& json) {
  write_file_atomically(
      path, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void write_json_file(const std::string& path, const nlohmann::json& json) {
  write_file_atomically(path,
                        json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

nlohmann::json read_json_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw RunFileError(fmt::format("{}: is a folder, not a file", path));
  }
  const std::string text = read_text(path);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    fail_parse(path, text, error);
  }
}

}  // namespace peakbench::result
