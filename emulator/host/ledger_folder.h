// A folder for what the processes of an emulated program leave of themselves; it goes away with its
// object.
#pragma once

#include <filesystem>

namespace peakbench::emulator {

class LedgerFolder {
 public:
  // In TMPDIR. Throws ConfigError where it cannot be made.
  LedgerFolder();
  LedgerFolder(const LedgerFolder&) = delete;
  LedgerFolder& operator=(const LedgerFolder&) = delete;
  ~LedgerFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace peakbench::emulator
