// The Python call stack of the calling thread, as a number in the journal's tree of frames.
#pragma once

#include <cstdint>

#include "recording/journal.h"

namespace peakbench::recording {

// -1 where the thread runs no Python. Takes Python's lock unless the thread has it: with none of an
// allocator's or the journal's locks held.
std::int32_t python_stack(JournalWriter& journal);

}  // namespace peakbench::recording
