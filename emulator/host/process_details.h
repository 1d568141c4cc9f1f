#pragma once

#include <string>
#include <vector>

#include "core/ledger.h"
#include "emulator/host/card_use.h"

namespace peakbench::emulator {

// Events of the processes: reads by the host, refusals, calls without a model. Identical ones of
// several processes are printed once.

std::string process_details(const std::vector<const Ledger*>& ledgers,
                            const std::vector<CardUse>& uses);

}  // namespace peakbench::emulator
