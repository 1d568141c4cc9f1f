// The one opener of regular files that somebody else made: it waits for nobody.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

namespace peakbench::files {

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

}  // namespace peakbench::files
