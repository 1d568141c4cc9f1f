// Entering a place of the program into the ledger.
#pragma once

#include "core/ledger.h"

namespace peakbench::emulator {

enum class PythonsLock { may_be_waited_for, is_held_or_not };

// Where the program is now: the line, if Python runs there; with the second, only where the calling
// thread holds Python's lock already, as whoever waits for it here may be waited for with it.
LedgerPlace place_now(const char* function, PythonsLock lock);

// The row of the same function and place counts another call; the largest bytes stay.
void enter_place(LedgerPlaces& places, const LedgerPlace& place);

// The entry made last has its line, if it has none: the calling thread's line now.
void complete_last_place(LedgerPlaces& places);

}  // namespace peakbench::emulator
