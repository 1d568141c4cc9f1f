// A file that is there whole or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace peakbench::files {

// Gathers bytes in a file without a name, where the file system has such files, and gives it the
// name when it is whole: a process that ends in between, however it ends, leaves nothing. Elsewhere
// in PATH.tmp-PROCESS-NUMBER, which goes with the object; what a killed process left of these,
// remove_unfinished() takes away.
//
// A link is followed, and stays one. What is no regular file (a device, a pipe) is written to as it
// is. Every failure is a HostError with the path, the reason and what to do; what was there
// before is as it was then.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);

  // Gives the file its name. `durable`: not before its bytes are on the disk. Once, at the end.
  void finish(bool durable = true);

 private:
  void open_beside();
  void take_name();
  [[noreturn]] void fail(int error) const;

  std::string path_;       // as it was named, for messages
  std::string target_;     // the file itself
  std::string temporary_;  // its name until it is whole; empty: none
  int descriptor_ = -1;
  bool replaces_ = true;  // false: a device or a pipe, written to as it is
};

// Deletes what processes that were killed left of files of these names in a folder. What somebody
// is writing now stays, as does everything that cannot be told from a stranger's file.
void remove_unfinished(const std::string& folder, const std::vector<std::string>& names);

// The HostError of a file that cannot be written: its path, the reason, and what to do.
[[noreturn]] void cannot_write(const std::string& path, int error);

}  // namespace peakbench::files
