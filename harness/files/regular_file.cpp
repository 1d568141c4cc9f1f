#include "files/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace peakbench::files {
namespace {

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
  const int no_links = links == Links::kRefuse ? O_NOFOLLOW : 0;
  // A pipe without a writer would be waited for without O_NONBLOCK.
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | no_links);
  struct stat facts {};
  if (descriptor_ < 0 || fstat(descriptor_, &facts) != 0) {
    // A socket, or a device without its driver; a link, where none is followed.
    const bool is_none = errno == ENXIO || (no_links != 0 && errno == ELOOP);
    error_ = is_none ? 0 : errno;
    close();
    return;
  }
  is_folder_ = S_ISDIR(facts.st_mode);
  size_ = static_cast<std::size_t>(facts.st_size);
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

}  // namespace peakbench::files
