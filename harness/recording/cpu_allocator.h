// LibTorch's CPU allocator replaced by one that reports each allocation and holds a budget.
#pragma once

#include <cstdint>

#include "recording/allocation_sink.h"

namespace peakbench::recording {

// What becomes of a tensor of the CPU that does not fit.
enum class CpuMemory {
  kDevice,  // over the budget, LibTorch's OutOfMemoryError: the case's own outcome
  kHost,    // beside a card: HostError, as the card is not what ran out
};

// Traces the CPU's allocator as the next space of the sink: the CPU device's own way, and what
// stands beside a CUDA device. Once a process. memory_limit_bytes: 0 for none. Returns where its
// last failure is found. What the system refuses within the budget is a HostError in both.
const OutOfMemory& trace_cpu_allocator(AllocationSink& sink, std::int64_t memory_limit_bytes,
                                       CpuMemory memory);

// Of the traced allocator: what is allocated while this says so of the calling thread (not 0) is
// neither traced nor budgeted.
void leave_out_of_cpu_trace(int (*is_left_out)());

}  // namespace peakbench::recording
