// What the emulated card has counted of this process so far.
#pragma once

#include "core/ledger.h"

namespace peakbench::worker {

// nullptr where the process does not run on the stand-ins, or on others than ours.
const emulator::Ledger* own_ledger();

}  // namespace peakbench::worker
