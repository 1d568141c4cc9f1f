// A ledger as the JSON that results carry and tools read.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/ledger.h"

namespace peakbench::emulator {

nlohmann::json to_json(const Ledger& ledger);

// Whether PyTorch's counts of a device are known. A process that did not come to its end has those
// of the last event of PyTorch's allocator, which lack what was handed out then: zero is no count.
bool are_counts_known(const Ledger& ledger, const LedgerDevice& device);

}  // namespace peakbench::emulator
