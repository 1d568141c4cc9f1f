#include "base/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"

namespace peakbench::files {
namespace {

// A pipe without a writer would be waited for without O_NONBLOCK.
constexpr int kHow = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr mode_t kPermissions = 0777;

// `some(to, bytes)` is read() or pread(), which may give less than there is.
template <class Some>
std::size_t all_of(char* to, std::size_t bytes, Some some) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = TEMP_FAILURE_RETRY(some(to + done, bytes - done, done));
    if (got < 0) throw std::system_error(errno, std::generic_category());
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace

RegularFile::RegularFile(const std::string& path, Links links) {
  const bool no_links = links == Links::kRefuse;
  take(open(path.c_str(), kHow | (no_links ? O_NOFOLLOW : 0)), no_links);
}

RegularFile::RegularFile(const Folder& folder, const std::string& name) {
  take(openat(folder.descriptor(), name.c_str(), kHow | O_NOFOLLOW), true);
}

// Straight after the call that opened it, or failed to.
void RegularFile::take(int descriptor, bool no_links) {
  descriptor_ = descriptor;
  struct stat facts {};
  if (descriptor_ < 0 || fstat(descriptor_, &facts) != 0) {
    is_link_ = no_links && errno == ELOOP;
    const bool is_none = errno == ENXIO || is_link_;  // a socket, a device without its driver
    error_ = is_none ? 0 : errno;
    close();
    return;
  }
  is_folder_ = S_ISDIR(facts.st_mode);
  size_ = static_cast<std::size_t>(facts.st_size);
  permissions_ = facts.st_mode & kPermissions;
  if (!S_ISREG(facts.st_mode)) close();
}

RegularFile::~RegularFile() { close(); }

void RegularFile::close() {
  if (const int open = std::exchange(descriptor_, -1); open >= 0) ::close(open);
}

std::size_t RegularFile::read(char* to, std::size_t bytes) {
  return all_of(to, bytes, [this](char* at, std::size_t more, std::size_t) {
    return ::read(descriptor_, at, more);
  });
}

std::size_t RegularFile::read_at(std::size_t offset, char* to, std::size_t bytes) const {
  return all_of(to, bytes, [&](char* at, std::size_t more, std::size_t done) {
    return ::pread(descriptor_, at, more, static_cast<off_t>(offset + done));
  });
}

std::optional<RegularFile::Extent> RegularFile::next_extent(std::size_t offset) const {
  if (offset >= size_) return std::nullopt;
  const auto from = lseek(descriptor_, static_cast<off_t>(offset), SEEK_DATA);
  if (from < 0 && errno == ENXIO) return std::nullopt;  // a hole to the end
  const auto to = from < 0 ? from : lseek(descriptor_, from, SEEK_HOLE);
  if (to < 0) return Extent{offset, size_};
  return Extent{static_cast<std::size_t>(from), std::min(size_, static_cast<std::size_t>(to))};
}

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

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;

class NewFile {
 public:
  NewFile(const Folder& folder, const std::string& name, mode_t permissions)
      : path_(folder.path_of(name)),
        descriptor_(openat(folder.descriptor(), name.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, permissions)) {
    if (descriptor_ < 0) cannot_write(path_, errno);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  void write_at(std::size_t offset, std::string_view bytes) const {
    if (lseek(descriptor_, static_cast<off_t>(offset), SEEK_SET) < 0) cannot_write(path_, errno);
    write_all(descriptor_, bytes, path_);
  }

  // The holes at its end are part of it too.
  void finish(std::size_t size) {
    if (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) cannot_write(path_, errno);
    // Of a quota or a network some file systems tell only now.
    if (close(std::exchange(descriptor_, -1)) != 0) cannot_write(path_, errno);
  }

 private:
  std::string path_;
  int descriptor_;
};

[[noreturn]] void cannot_read(const std::string& path, int error) {
  throw HostError(fmt::format("{}: cannot be read: {}", path, host_error_text(error)));
}

std::size_t read_some(const Copied& from, std::size_t offset, std::vector<char>& bytes,
                      std::size_t most) {
  std::size_t got = 0;
  try {
    got = from.file.read_at(offset, bytes.data(), std::min(bytes.size(), most));
  } catch (const std::system_error& error) {
    cannot_read(from.path, error.code().value());
  }
  if (got == 0) throw ConfigError(fmt::format("{}: became shorter while it was copied", from.path));
  return got;
}

}  // namespace

bool copy_file(const Copied& from, const Folder& to, const std::string& name,
               const std::function<bool()>& cancelled) {
  if (cancelled()) return false;
  NewFile target(to, name, from.file.permissions());
  std::vector<char> bytes(std::min(kChunk, from.file.size()));
  std::size_t at = 0;
  while (const auto extent = from.file.next_extent(at))
    for (at = extent->from; at < extent->to;) {
      if (cancelled()) return false;
      const auto got = read_some(from, at, bytes, extent->to - at);
      target.write_at(at, {bytes.data(), got});
      at += got;
    }
  target.finish(from.file.size());
  return true;
}

}  // namespace peakbench::files
