#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trace/trace.h"

namespace peakbench::recording {

// An allocation that failed, as its allocator saw it.

struct OutOfMemory {
  std::int64_t requested_bytes = 0, allocated_bytes = 0;
  std::int64_t limit_bytes = 0;  // 0: none
  // Of the CUDA caching allocator.
  std::optional<std::int64_t> reserved_bytes, largest_free_block_bytes, retries;
};

// Events of allocators, reported as they happen.

// Where tracers report what the allocators of a process do. Thread-safe; makes no LibTorch call,
// because it runs under allocator locks. Addresses are unique while alive across all spaces of a
// process.
class AllocationSink {
 public:
  virtual ~AllocationSink() = default;
  virtual int add_space(const std::string& name) = 0;
  virtual void allocated(int space, std::uint64_t address, std::int64_t requested_bytes,
                         std::int64_t block_bytes, std::int64_t stream) = 0;
  // CUDA: asked to be freed; from here on max_memory_allocated does not count it. `freed` follows,
  // at once or when the streams that use it are done.
  virtual void free_requested(int space, std::uint64_t address) = 0;
  virtual void freed(int space, std::uint64_t address) = 0;
  // Everything else of an allocator's life: segments, maps, failures.
  virtual void event(trace::EventKind kind, int space, std::uint64_t address, std::int64_t bytes,
                     std::int64_t stream) = 0;
};

}  // namespace peakbench::recording
