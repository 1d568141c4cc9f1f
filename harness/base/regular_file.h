#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/folder.h"

namespace peakbench::files {

// The one opener of regular files that somebody else made: it waits for nobody.

class Folder;

// A file open for reading. A pipe without a writer, a terminal or another device is not waited for,
// and nothing is read from it: it is not open, as what is missing or not readable is not. Why is
// for the caller to tell, in whose words it is.
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
  // From where reading stands; fewer than `bytes` at the file's end. Throws std::system_error.
  std::size_t read(char* to, std::size_t bytes);
  // From `offset`, wherever reading stands; as read() else.
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

// Reading files that somebody else made: whole, bounded, and never waiting for anybody.

// More than any of its kind has; a file that is larger is something else.
inline constexpr std::size_t kMostSmallText = std::size_t{16} << 20;  // suites, cards, templates
inline constexpr std::size_t kMostRunText = std::size_t{1} << 30;     // run.json

// The bytes of a regular file, links followed. A pipe, a terminal or another device is refused
// without reading from it: a run is made again from its files, and what was read once is not there
// a second time. Throws ConfigError with the path: missing, not readable, a folder, no regular
// file, more than `most_bytes`; HostError where the machine is to blame.
std::string read_regular_file(const std::string& path, std::size_t most_bytes);

// A file copied from one folder that is held open to another.

// What is copied, and how it is called in messages.
struct Copied {
  const RegularFile& file;  // open
  std::string path;
};

// A new file `name` with its bytes, holes and permissions (but for the umask); false where
// `cancelled`, which is asked every megabyte, said so: what is there then is for the caller to take
// away, as it is where this throws. Throws HostError or ConfigError with the path of the one of the
// two that could not be read, or written; something of that name is in the way.
bool copy_file(const Copied& from, const Folder& to, const std::string& name,
               const std::function<bool()>& cancelled);

}  // namespace peakbench::files
