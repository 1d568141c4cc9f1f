// What depends on how fast a card is: whether it is done with something, and how long that took.
// Here everything is done at once, or when the host waits for it (late_streams.h).
#pragma once

#include <cstdint>

#include "core/api.h"

namespace peakbench::emulator {

// The result of cudaEventQuery and cudaStreamQuery. If it holds only here (the host has not
// waited), the ledger records who asked. That is the program, with its line, or PyTorch's
// allocators, which reuse memory by it. `caller`: the calling code. Call with no lock held.
PEAKBENCH_EMULATOR_API bool answer_event_query(std::uint64_t event, const char* function,
                                               const void* caller);
PEAKBENCH_EMULATOR_API bool answer_stream_query(std::uint64_t stream, const char* function,
                                                const void* caller);
// Milliseconds between any two events. Programs divide by it, and repeat until a time is reached
// (autotuning), so it is positive, and long. Entered as unmodelled, and as a read if the program
// asked.
PEAKBENCH_EMULATOR_API float answer_elapsed_time(const char* function, const void* caller);

// A program has the card profiled (CUPTI).
PEAKBENCH_EMULATOR_API void card_is_profiled();

}  // namespace peakbench::emulator
