// What each emulated process took of its card, read from the ledgers that the processes left.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/ledger.h"

namespace peakbench::emulator {

// Of all processes that used CUDA, by process id; those still running or killed included. Files
// that are no ledgers of this build are left out.
std::vector<std::unique_ptr<Ledger>> read_ledgers(const std::filesystem::path& folder);

// The most that all processes together took of each card, their contexts included, by card; empty
// where they shared none.
std::vector<std::uint64_t> read_card_peaks(const std::filesystem::path& folder);

}  // namespace peakbench::emulator
