// A folder that goes with its object, and after SIGKILL with the next one that is made next to it.
#pragma once

#include <filesystem>
#include <string>

namespace peakbench::files {

class TemporaryFolder {
 public:
  // `parent`/`prefix`XXXXXX, for this user alone. First removes the folders of that prefix whose
  // processes have ended: each holds a lock while it lives. Where the file system has no locks,
  // they stay. Throws std::system_error where the folder cannot be made.
  TemporaryFolder(const std::filesystem::path& parent, const std::string& prefix);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }  // absolute

 private:
  bool make(const std::filesystem::path& parent, const std::string& prefix);

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace peakbench::files
