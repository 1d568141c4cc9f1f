// Page-locked host memory, a space of its own: every allocation of PyTorch's caching host
// allocator.
#pragma once

#include "record/allocation_sink.h"

namespace peakbench::record {

// Reports pinned memory for the rest of the process, as the space `pinned`, which appears with the
// first allocation. Blocks are as the allocator counts them: the next power of two. A block is free
// when its tensor is; the allocator may still wait for a stream before it gives it out again.
void trace_pinned_memory(AllocationSink& sink);

}  // namespace peakbench::record
