// A function's name from a library's own table of symbols, which has those that are not exported: a
// plugin exports its entry alone.
#pragma once

#include <cstdint>

namespace peakbench::worker {

// Mangled; null where the file has no such table (stripped) or no function there. `offset`: from
// where the library is loaded. Allocates nothing and takes no lock, for a signal handler; leaves
// the file mapped, as the process ends.
const char* symbol_of(const char* path, std::uintptr_t offset);

}  // namespace peakbench::worker
