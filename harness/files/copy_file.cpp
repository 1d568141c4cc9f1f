#include "files/copy_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "errors/errors.h"
#include "errors/host_limits.h"
#include "files/atomic_file.h"
#include "files/file.h"

namespace peakbench::files {
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
