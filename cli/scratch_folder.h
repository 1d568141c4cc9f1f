// A folder for what is run only to see how it ends; goes with all that is in it.
#pragma once

#include <filesystem>
#include <string>

namespace peakbench::cli {

class ScratchFolder {
 public:
  // In this folder. Throws ConfigError where nothing can be written there.
  explicit ScratchFolder(const std::string& beside);
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace peakbench::cli
