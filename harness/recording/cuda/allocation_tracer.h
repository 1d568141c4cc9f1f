#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>
#include <mutex>
#include <vector>

#include "recording/allocation_sink.h"
#include "recording/cuda/allocator_events.h"

namespace peakbench::recording {

// Every allocation of PyTorch's CUDA caching allocator: requested bytes from its events, block
// bytes from the memory report that follows them under the same lock.

class AllocationTracer {
 public:
  // Attaches for the rest of the process; the CUDA context must exist. One space a card, `cuda:0`
  // first.
  AllocationTracer(AllocationSink& sink, int device_count);

  const OutOfMemory& last_out_of_memory() const { return failure_; }
  // Allocations for which no report followed (a thread that did not inherit ours): their block size
  // was assumed.
  std::int64_t unreported() const { return unreported_; }

 private:
  class Report;  // receives the block sizes

  void on_event(const AllocatorEvent& event);
  void on_report(void* pointer, std::int64_t block_bytes);
  void on_out_of_memory(int device, std::int64_t requested, std::int64_t limit, std::int64_t free);
  void emit_pending(std::int64_t block_bytes);

  struct Pending {
    bool waiting = false;
    int space = 0;
    std::uint64_t address = 0;
    std::int64_t requested_bytes = 0, stream = 0;
  };

  AllocationSink& sink_;
  std::vector<int> spaces_;
  std::mutex mutex_;
  Pending pending_;
  std::int64_t unreported_ = 0;
  OutOfMemory failure_;
  std::unique_ptr<c10::DebugInfoGuard> guard_;
};

// Page-locked host memory, a space of its own: every allocation of PyTorch's caching host
// allocator.

// Reports pinned memory for the rest of the process, as the space `pinned`, which appears with the
// first allocation. Blocks are as the allocator counts them: the next power of two. A block is free
// when its tensor is; the allocator may still wait for a stream before it gives it out again.
void trace_pinned_memory(AllocationSink& sink);

}  // namespace peakbench::recording
