// What a device's allocators do, told as it happens, and held against what they count themselves.
#pragma once

#include <string>

#include "result/case.h"
#include "trace/trace.h"

namespace peakbench::device {

// Where a device reports what its allocators do. Thread-safe; makes no LibTorch call, because it
// runs under allocator locks. Addresses are unique while alive across all spaces of a process.
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

class Tracing {
 public:
  virtual ~Tracing() = default;
  // Installs tracing for the rest of the process; before the first tensor is made. LibTorch has no
  // way to take it out.
  virtual void trace(AllocationSink& sink) = 0;
  // Called where a phase ends: compares the trace's sums with the allocator's own counters. Throws
  // TraceError.
  virtual void check(std::int64_t traced_allocated_bytes, const std::string& where) {}
  // Before the first step: the allocator's own peaks start anew. After the last: they must be the
  // trace's. Throws TraceError.
  virtual void reset_peaks() {}
  virtual void check_peaks(const result::Memory& traced) {}
  // The facts of the failure that LibTorch's OutOfMemoryError was thrown for.
  virtual result::OutOfMemory last_out_of_memory() const = 0;
};

}  // namespace peakbench::device
