#include "files/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "files/folder.h"

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
    const ssize_t got = some(to + done, bytes - done, done);
    if (got < 0 && errno == EINTR) continue;
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

}  // namespace peakbench::files
