#pragma once

#include <string>
#include <vector>

#include "core/ledger.h"
#include "emulator/host/card_use.h"

namespace peakbench::emulator {

// What happened in the processes besides what they took: what was read back, refused, or answered
// without a model. What several processes did alike is said once.

std::string process_details(const std::vector<const Ledger*>& ledgers,
                            const std::vector<CardUse>& uses);

}  // namespace peakbench::emulator
