// A folder for what the processes of an emulated program leave of themselves; it goes away with its
// object.
#pragma once

#include <filesystem>
#include <optional>

#include "files/temporary_folder.h"

namespace peakbench::emulator {

class LedgerFolder {
 public:
  // In TMPDIR. Throws ConfigError where it cannot be made.
  LedgerFolder();
  const std::filesystem::path& path() const { return folder_->path(); }

 private:
  std::optional<files::TemporaryFolder> folder_;
};

}  // namespace peakbench::emulator
