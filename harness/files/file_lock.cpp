#include "files/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "files/atomic_file.h"

namespace peakbench::files {

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
