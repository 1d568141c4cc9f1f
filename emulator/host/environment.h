// What a process needs in its environment to find an emulated card.
#pragma once

#include <filesystem>

#include "host/card.h"
#include "process/environment.h"

namespace peakbench::emulator {

// Variables to set, replacing equal names: the stand-ins preloaded (before what LD_PRELOAD already
// names), the card, and the folder where every process of the program leaves its ledger and shares
// the cards with the others (empty: none is left, and nothing shared). Holds while this process
// lives, see preload_folder.h; throws as that does.
process::Environment emulation_environment(const Card& card, const Installation& installation,
                                           const std::filesystem::path& ledger_folder);

}  // namespace peakbench::emulator
