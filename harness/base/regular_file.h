#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/folder.h"

namespace peakbench::files {

// The only opener of regular files of other origin. It never waits.

// A file open for reading. Pipes, terminals and other devices are not opened, so it neither waits
// for them nor reads from them. Then is_open() is false, as for missing or unreadable files; the
// caller reports why.
class RegularFile {
 public:
  enum class Links { kFollow, kRefuse };  // of the file itself; those of its folders are followed

  explicit RegularFile(const std::string& path, Links links = Links::kFollow);
  // In that very folder: no link is followed.
  RegularFile(const Folder& folder, const std::string& name);
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;
  ~RegularFile();

  bool is_open() const { return descriptor_ >= 0; }
  // Of one that is not open: what the system says (errno); 0: it is there, and no regular file.
  int error() const { return error_; }
  bool is_folder() const { return is_folder_; }
  bool is_link() const { return is_link_; }  // where links are refused

  // Some of /proc say 0 and hold more.
  std::size_t size() const { return size_; }
  mode_t permissions() const { return permissions_; }
  // Reads at the current position; fewer than `bytes` at the file's end. Throws std::system_error.
  std::size_t read(char* to, std::size_t bytes);
  // Reads at `offset` and keeps the current position; otherwise as read().
  std::size_t read_at(std::size_t offset, char* to, std::size_t bytes) const;
  // From `offset` on, the next bytes that the disk holds: the others, of a file with holes, are
  // zeros. Nullopt: none are left. Where the file system does not tell, all are.
  struct Extent {
    std::size_t from = 0, to = 0;
  };
  std::optional<Extent> next_extent(std::size_t offset) const;

 private:
  void take(int descriptor, bool no_links);
  void close();

  int descriptor_ = -1;
  int error_ = 0;
  bool is_folder_ = false, is_link_ = false;
  std::size_t size_ = 0;
  mode_t permissions_ = 0;
};

// Reads files of other origin: completely, up to a limit, and without waiting.

// More than any of its kind has; a file that is larger is something else.
inline constexpr std::size_t kMostSmallText = std::size_t{16} << 20;  // suites, cards, templates
inline constexpr std::size_t kMostRunText = std::size_t{1} << 30;     // run.json

// The bytes of a regular file; links are followed. A pipe, a terminal or another device is refused
// without reading from it: a run is repeated from its files, which could not be read again. Throws
// ConfigError with the path: missing, not readable, a folder, no regular file, more than
// `most_bytes`. Throws HostError if the machine fails.
std::string read_regular_file(const std::string& path, std::size_t most_bytes);

// A file copied from one folder that is held open to another.

// What is copied, and how it is called in messages.
struct Copied {
  const RegularFile& file;  // open
  std::string path;
};

// Makes a new file `name` with the same bytes, holes and permissions (except the umask). False if
// `cancelled`, asked every megabyte, returned true. Then, and if this throws, the caller deletes
// the unfinished file. Throws HostError or ConfigError with the path that could not be read or
// written, or if `name` exists.
bool copy_file(const Copied& from, const Folder& to, const std::string& name,
               const std::function<bool()>& cancelled);

}  // namespace peakbench::files
