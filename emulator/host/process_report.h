// What each emulated process took of its card, read from the ledgers that the processes left.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/ledger.h"
#include "core/shared_cards.h"

namespace peakbench::emulator {

// Of all processes that used CUDA, by process id; those still running or killed included. Files
// that are no ledgers of this build are left out.
std::vector<std::unique_ptr<Ledger>> read_ledgers(const std::filesystem::path& folder);

// By card; empty where processes shared none.
std::vector<SharedPeak> read_card_peaks(const std::filesystem::path& folder);

}  // namespace peakbench::emulator
