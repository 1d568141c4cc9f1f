#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/folder.h"
#include "core/ledger.h"
#include "core/shared_cards.h"

namespace peakbench::emulator {

// A folder for what the processes of an emulated program leave of themselves; it goes away with its
// object.

class LedgerFolder {
 public:
  // In TMPDIR. Throws ConfigError where it cannot be made.
  LedgerFolder();
  const std::filesystem::path& path() const { return folder_->path(); }

 private:
  std::optional<files::TemporaryFolder> folder_;
};

// What each emulated process took of its card, read from the ledgers that the processes left.

// Of all processes that used CUDA, by process id; those still running or killed included. Files
// that are no ledgers of this build are left out.
std::vector<std::unique_ptr<Ledger>> read_ledgers(const std::filesystem::path& folder);

// By card; empty where processes shared none.
std::vector<SharedPeak> read_card_peaks(const std::filesystem::path& folder);

}  // namespace peakbench::emulator
