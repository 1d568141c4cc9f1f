#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ledger.h"
#include "emulator/host/card_use.h"

namespace peakbench::emulator {

// What a user can do about a function that the emulated card refuses.

// A sentence; empty where nothing is known.
std::string_view way_round(std::string_view function);

// What happened in the processes besides what they took: what was read back, refused, or answered
// without a model. What several processes did alike is said once.

std::string process_details(const std::vector<const Ledger*>& ledgers,
                            const std::vector<CardUse>& uses);

}  // namespace peakbench::emulator
