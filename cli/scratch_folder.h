// A folder for what is run only to see how it ends; goes with all that is in it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "files/temporary_folder.h"

namespace peakbench::cli {

class ScratchFolder {
 public:
  // In this folder. Throws ConfigError where nothing can be written there.
  explicit ScratchFolder(const std::string& beside);
  const std::filesystem::path& path() const { return folder_->path(); }

 private:
  std::optional<files::TemporaryFolder> folder_;
};

}  // namespace peakbench::cli
