// Where a program learns how much memory the card has left: it asks, or it is refused some. What it
// then does depends on the CUDA context, which is in no figure.
#pragma once

#include <cstdint>

#include "core/core.h"

namespace peakbench::emulator {

// The program asked, by this function. `caller` is the code that did: what PyTorch's allocator asks
// for its messages decides nothing. Call with no lock held.
PEAKBENCH_EMULATOR_API void free_memory_is_read(const char* function, const void* caller);

// An allocation was refused. Call without the mutex; an allocator may hold a lock of its own.
void enter_out_of_memory(std::uint64_t bytes);

}  // namespace peakbench::emulator
