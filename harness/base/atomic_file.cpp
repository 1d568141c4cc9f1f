#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "base/errors.h"
#include "base/file.h"

namespace peakbench::files {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const auto folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::string temporary_name(const std::string& target, int number) {
  return fmt::format("{}.tmp-{}-{}", target, getpid(), number);
}

std::string name_of_descriptor(int descriptor) {
  return fmt::format("/proc/self/fd/{}", descriptor);
}

// The rename itself reaches the disk. A file system that cannot do this is no reason to fail.
void flush_folder_of(const std::string& path) {
  const int descriptor = open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

// A descriptor of ours by its name: what it is open for has a place to go on at, which opening the
// file again would lose.
std::optional<int> own_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const auto* end = path.data() + path.size();
    const auto [rest, error] = std::from_chars(path.data() + folder.size(), end, number);
    if (error == std::errc() && rest == end) return number;
  }
  return std::nullopt;
}

bool is_device_or_pipe(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode);
}

std::string behind_links(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
  const auto target = fs::weakly_canonical(path, error);
  return error ? path : target.string();
}

// "run.json.tmp-4711-0" of "run.json"; "-0" is missing in those of earlier versions.
bool is_temporary_of(std::string_view file, std::string_view name) {
  constexpr std::string_view kMark = ".tmp-";
  if (!file.starts_with(name)) return false;
  file.remove_prefix(name.size());
  if (!file.starts_with(kMark)) return false;
  file.remove_prefix(kMark.size());
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto process = std::ranges::find_if_not(file, is_digit);
  if (process == file.begin()) return false;
  if (process == file.end()) return true;
  return *process == '-' && process + 1 != file.end() &&
         std::all_of(process + 1, file.end(), is_digit);
}

// Who writes a file holds it locked until it has its name.
void remove_if_nobodys(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return;
  struct stat facts {};
  if (fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) &&
      flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    unlink(path.c_str());
  close(descriptor);
}

}  // namespace

void cannot_write(const std::string& path, int error) {
  throw HostError(fmt::format("{}: cannot write: {}", path, host_error_text(error)));
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), target_(path_) {
  const auto own = own_descriptor(path_);
  if (own || is_device_or_pipe(path_)) {
    replaces_ = false;
    descriptor_ = own ? fcntl(*own, F_DUPFD_CLOEXEC, 0)
                      : open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor_ < 0) fail(errno);
    return;
  }
  if (is_folder(path_)) fail(EISDIR);
  target_ = behind_links(path_);
  descriptor_ = open(folder_of(target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  // EISDIR: a kernel that does not know such files; ENOENT: that, or no such folder.
  if (descriptor_ < 0) open_beside();
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::fail(int error) const { cannot_write(path_, error); }

void AtomicFile::open_beside() {
  for (int number = 0;; ++number) {
    const auto name = temporary_name(target_, number);
    descriptor_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) fail(errno);
    temporary_ = name;
    flock(descriptor_, LOCK_EX | LOCK_NB);
    // Another's remove_unfinished() may have come between the two.
    struct stat facts {};
    if (fstat(descriptor_, &facts) != 0 || facts.st_nlink > 0) return;
    close(descriptor_);
    temporary_.clear();
  }
}

void AtomicFile::write(std::string_view bytes) { write_all(descriptor_, bytes, path_); }

void AtomicFile::finish(bool durable) {
  if (replaces_ && durable && fsync(descriptor_) != 0) fail(errno);
  if (replaces_) {
    const SignalsWait wait;
    take_name();
  }
  const int closed = close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 && !replaces_) fail(errno);
  if (replaces_ && durable) flush_folder_of(target_);
}

void AtomicFile::take_name() {
  if (temporary_.empty()) {
    flock(descriptor_, LOCK_EX | LOCK_NB);
    const auto link_as = [&](const std::string& name) {
      return linkat(AT_FDCWD, name_of_descriptor(descriptor_).c_str(), AT_FDCWD, name.c_str(),
                    AT_SYMLINK_FOLLOW) == 0;
    };
    if (link_as(target_)) return;
    if (errno != EEXIST) fail(errno);
    // A link replaces nothing; a rename does.
    int number = 0;
    while (!link_as(temporary_name(target_, number)))
      if (errno == EEXIST)
        ++number;
      else
        fail(errno);
    temporary_ = temporary_name(target_, number);
  }
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void remove_unfinished(const std::string& folder, const std::vector<std::string>& names) {
  for (const auto& file : names_in(folder))
    if (std::ranges::any_of(names,
                            [&](const std::string& name) { return is_temporary_of(file, name); }))
      remove_if_nobodys((fs::path(folder) / file).string());
}

FileLock::FileLock(std::string path, const std::function<void()>& on_wait,
                   const std::function<bool()>& give_up)
    : path_(std::move(path)) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
  for (bool told = false;;) {
    const Got got = take();
    if (got == Got::kIt) return;
    close();
    if (give_up()) return;
    if (got == Got::kAnOldFile) continue;
    if (!told) on_wait();
    told = true;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

FileLock::~FileLock() {
  if (is_held()) unlink(path_.c_str());  // before it is given back
  close();
}

FileLock::Got FileLock::take() {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  descriptor_ = open(path_.c_str(), kFlags, 0600);
  if (descriptor_ < 0) cannot_write(path_, errno);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK || errno == EINTR ? Got::kNothing : Got::kIt;
  return is_its_file() ? Got::kIt : Got::kAnOldFile;
}

// Whoever held it before has taken the file away; between open() and flock(), it was this one.
bool FileLock::is_its_file() const {
  struct stat held {
  }, named{};
  return fstat(descriptor_, &held) == 0 && stat(path_.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

void FileLock::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace peakbench::files
