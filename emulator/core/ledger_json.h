// A ledger as the JSON that results carry and tools read.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/ledger.h"

namespace peakbench::emulator {

nlohmann::json to_json(const Ledger& ledger);

// Whether PyTorch's counts of a device are known. A killed process leaves the counts of its
// allocator's last event, without the block that was allocated then. So zero means unknown.
bool are_counts_known(const Ledger& ledger, const LedgerDevice& device);

}  // namespace peakbench::emulator
