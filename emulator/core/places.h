// Entering a place of the program into the ledger.
#pragma once

#include "core/ledger.h"

namespace peakbench::emulator {

// The row of the same function and place counts another call; the largest bytes stay.
void enter_place(LedgerPlaces& places, const LedgerPlace& place);

}  // namespace peakbench::emulator
