// A ledger as the JSON that results carry and tools read.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/ledger.h"

namespace peakbench::emulator {

nlohmann::json to_json(const Ledger& ledger);

}  // namespace peakbench::emulator
