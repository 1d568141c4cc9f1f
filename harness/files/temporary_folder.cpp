#include "files/temporary_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <vector>

namespace peakbench::files {
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
  std::error_code error;
  std::vector<fs::path> found;
  for (auto entry = fs::directory_iterator(parent, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const auto name = entry->path().filename().string();
    if (name.starts_with(prefix) && name.size() == prefix.size() + kRandom.size())
      found.push_back(entry->path());
  }
  for (const auto& folder : found) {
    const int lock = lock_of_abandoned(folder);
    if (lock < 0) continue;
    fs::remove_all(folder, error);
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
