#include "base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"

namespace peakbench::files {
namespace {

// Only to reach what is in it: that needs no permission to list it.
constexpr int kToEnter = O_PATH | O_DIRECTORY | O_CLOEXEC;

[[noreturn]] void cannot_enter(const std::string& path, int error) {
  if (is_host_error(error))
    throw HostError(fmt::format("{}: cannot be entered: {}", path, host_error_text(error)));
  throw ConfigError(error == ENOTDIR
                        ? fmt::format("{}: is no folder", path)
                        : fmt::format("{}: cannot be entered: {}", path, std::strerror(error)));
}

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw HostError(fmt::format("{}: {}: {}", path, what, host_error_text(error)));
}

// A link is told from what is no folder only afterwards; the kernel refuses both.
[[noreturn]] void refuse(int folder, const std::string& name, const std::string& path, int error) {
  struct stat facts {};
  if (fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(facts.st_mode))
    refuse_link(path);
  cannot_enter(path, error);
}

// For what O_PATH does not do: listing, flushing.
int open_to_read(int folder) { return openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

}  // namespace

void refuse_link(const std::string& path) {
  throw ConfigError(
      fmt::format("{}: is a link. Links are not followed there, because they may lead to other "
                  "files. Replace the link by its target",
                  path));
}

Folder::Folder(const std::string& path)
    : path_(path), descriptor_(open(path.empty() ? "." : path.c_str(), kToEnter)) {
  if (descriptor_ < 0) cannot_enter(path_, errno);
}

Folder::Folder(Folder&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Folder::~Folder() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string Folder::path_of(const std::string& name) const {
  return (std::filesystem::path(path_) / name).string();
}

std::optional<Folder> Folder::folder(const std::string& name) const {
  const int found = openat(descriptor_, name.c_str(), kToEnter | O_NOFOLLOW);
  if (found < 0 && errno == ENOENT) return std::nullopt;
  if (found < 0) refuse(descriptor_, name, path_of(name), errno);
  return Folder(path_of(name), found);
}

Folder Folder::made(const std::string& name) const {
  constexpr mode_t kWhatTheUmaskLeaves = 0777;
  if (mkdirat(descriptor_, name.c_str(), kWhatTheUmaskLeaves) != 0 && errno != EEXIST)
    fail(path_of(name), "cannot make the folder", errno);
  auto made = folder(name);
  if (!made) fail(path_of(name), "cannot make the folder", ENOENT);
  return std::move(*made);
}

std::vector<std::string> Folder::names() const {
  const int listed = open_to_read(descriptor_);
  DIR* stream = listed < 0 ? nullptr : fdopendir(listed);
  if (stream == nullptr) {
    const int error = errno;
    if (listed >= 0) close(listed);
    fail(path_, "cannot be read", error);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): its own stream
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  closedir(stream);
  if (error != 0) fail(path_, "cannot be read", error);
  return names;
}

void Folder::remove_file(const std::string& name) const {
  if (unlinkat(descriptor_, name.c_str(), 0) == 0 || errno == ENOENT || errno == EISDIR) return;
  fail(path_of(name), "cannot delete", errno);
}

void Folder::remove_if_empty(const std::string& name) const {
  if (unlinkat(descriptor_, name.c_str(), AT_REMOVEDIR) == 0) return;
  switch (errno) {
    case ENOENT:
    case ENOTDIR:  // a file, or a link
    case ENOTEMPTY:
    case EEXIST:
    case EBUSY:  // something is mounted there
      return;
    default:
      fail(path_of(name), "cannot delete", errno);
  }
}

void Folder::flush() const {
  const int held = open_to_read(descriptor_);
  const bool flushed = held >= 0 && syncfs(held) == 0;
  const int error = errno;
  if (held >= 0) close(held);
  if (!flushed && is_host_error(error)) cannot_write(path_, error);
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRandom = "XXXXXX";
constexpr const char* kLock = ".lock";

// The folder's lock, held; -1: its process lives, or it is no folder of ours.
int lock_of_abandoned(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return -1;
  const int lock = openat(descriptor, kLock, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  close(descriptor);
  if (lock < 0) return -1;
  struct stat facts {};
  if (fstat(lock, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
      flock(lock, LOCK_EX | LOCK_NB) == 0)
    return lock;
  close(lock);
  return -1;
}

void remove_abandoned(const fs::path& parent, const std::string& prefix) {
  for (const auto& name : names_in(parent.string())) {
    if (!name.starts_with(prefix) || name.size() != prefix.size() + kRandom.size()) continue;
    const int lock = lock_of_abandoned(parent / name);
    if (lock < 0) continue;
    std::error_code ignored;
    fs::remove_all(parent / name, ignored);
    close(lock);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder(const fs::path& parent, const std::string& prefix) {
  const auto there = fs::absolute(parent);
  remove_abandoned(there, prefix);
  while (!make(there, prefix)) {
  }
}

// False where somebody who removes what is abandoned came between.
bool TemporaryFolder::make(const fs::path& parent, const std::string& prefix) {
  std::string pattern = (parent / (prefix + std::string(kRandom))).string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::system_error(errno, std::system_category());
  const auto file = fs::path(pattern) / kLock;
  lock_ = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock_ < 0) {
    const int error = errno;
    rmdir(pattern.c_str());
    throw std::system_error(error, std::system_category());
  }
  const bool is_taken = flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat facts {};
  if (!is_taken && fstat(lock_, &facts) == 0 && facts.st_nlink > 0) {
    path_ = pattern;
    return true;
  }
  close(lock_);
  return false;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  close(lock_);
}

}  // namespace peakbench::files
