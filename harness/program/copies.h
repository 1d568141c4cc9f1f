// Which copies of a program are told by their dtypes, as scopes of its trace. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/trace.h"
#include "tracer/journal_format.h"

namespace peakbench::program {

// A copy begins or ends on a thread, before the event of this number.
struct CopyMark {
  std::uint64_t event = 0;
  bool ends = false;
  std::int32_t thread = 0;
  tracer::Copy copy = tracer::Copy::kLarger;
  std::optional<std::uint64_t> source;  // the event that allocated what is copied, where known
};

// Adds scopes to a trace that has its names: of each copy to a larger dtype, and of each copy to a
// smaller one of what is a parameter. `marks` are in order; an end without a beginning is left out.
void add_copies(trace::Trace& trace, const std::vector<CopyMark>& marks);

}  // namespace peakbench::program
