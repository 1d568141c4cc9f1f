// What allocators do, told as it happens.
#pragma once

#include <cstdint>
#include <string>

#include "trace/trace.h"

namespace peakbench::record {

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

}  // namespace peakbench::record
