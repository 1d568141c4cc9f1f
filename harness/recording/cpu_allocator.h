// LibTorch's CPU allocator replaced by one that reports each allocation and holds a budget.
#pragma once

#include <cstdint>

#include "recording/allocation_sink.h"

namespace peakbench::recording {

// What becomes of a tensor of the CPU that does not fit.
enum class CpuMemory {
  kDevice,  // over the budget, LibTorch's OutOfMemoryError: the case's own outcome
  kHost,    // with a card: HostError, as not the card ran out
};

// Traces the CPU's allocator as the next space of the sink: for the CPU device, and for host memory
// used with a CUDA device. Call once a process. memory_limit_bytes: 0 for none. Returns the state
// that records its last failure. If the system refuses memory within the budget, that is a
// HostError.
const OutOfMemory& trace_cpu_allocator(AllocationSink& sink, std::int64_t memory_limit_bytes,
                                       CpuMemory memory);

// Allocations are neither traced nor budgeted while this function returns non-zero on the calling
// thread.
void leave_out_of_cpu_trace(int (*is_left_out)());

}  // namespace peakbench::recording
