// What a device's allocators do, recorded, and held against what they count themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "record/allocation_sink.h"
#include "record/out_of_memory.h"
#include "result/case.h"

namespace peakbench::device {

class Tracing {
 public:
  virtual ~Tracing() = default;
  // Installs tracing for the rest of the process; before the first tensor is made. LibTorch has no
  // way to take it out.
  virtual void trace(record::AllocationSink& sink) = 0;
  // Called where a phase ends: compares the trace's sums with the allocator's own counters. Throws
  // TraceError.
  virtual void check(std::int64_t traced_allocated_bytes, const std::string& where) {}
  // Before the first step: the allocator's own peaks start anew. After the last: they must be the
  // trace's. Throws TraceError.
  virtual void reset_peaks() {}
  virtual void check_peaks(const result::Memory& traced) {}
  // Calls `visit` for each block that handles of the vendor's libraries hold now, with its address
  // and the library, as PyTorch's own tables have it. Between steps: nothing is computed meanwhile.
  using VisitWorkspace = std::function<void(std::uint64_t address, const std::string& library)>;
  virtual void visit_workspaces(const VisitWorkspace& visit) const {}
  // From now on calls `visit` for each block that such a library is given, as soon as it is, on the
  // thread that gives it; for the rest of the process. On emulated cards: no other says so.
  virtual void listen_to_workspaces(const VisitWorkspace& visit) {}
  // The facts of the failure that LibTorch's OutOfMemoryError was thrown for.
  virtual record::OutOfMemory last_out_of_memory() const = 0;
};

}  // namespace peakbench::device
