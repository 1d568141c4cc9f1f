// Events of PyTorch's CUDA caching allocator in our own types. Only this module uses PyTorch's. No
// header of LibTorch is needed to listen.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "trace/trace.h"

namespace peakbench::recording {

struct AllocatorEvent {
  trace::EventKind kind = trace::EventKind::kAlloc;
  int device = 0;
  std::uint64_t address = 0;  // kOutOfMemory: what the card had free
  std::int64_t bytes = 0;     // asked for; of segments: theirs
  std::int64_t stream = 0;
  // Of the allocator's pools: {0, 0} is the default one, others are a CUDA graph's or a MemPool's.
  std::pair<std::uint64_t, std::uint64_t> pool;
};
using AllocatorListener = std::function<void(const AllocatorEvent&)>;

// Adds a listener for the rest of the process; the allocator must exist and be initialised. The
// listener is called under the allocator's lock, on any thread. Throws LibTorch's error if the
// allocator in use (cudaMallocAsync, the program's own) has no listeners.
void listen_to_allocator(AllocatorListener listener);

// What the allocator has handed out of a device now. Not under its lock.
std::uint64_t allocated_bytes(int device);

// torch.backends.cudnn, as PyTorch chooses convolutions by it. 0: unknown, as it was set in two
// ways that contradict each other.
int cudnn_settings(int* tf32, int* deterministic, int* benchmark);

}  // namespace peakbench::recording
