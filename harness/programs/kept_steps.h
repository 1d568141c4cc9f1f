// Which steps of a program stay in its trace: long programs then leave small files. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "trace/trace.h"

namespace peakbench::programs {

// Steps as printed: the first one is 1. Both ends are included.
struct StepRange {
  std::int64_t first = 1;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();

  bool operator==(const StepRange&) const = default;
  bool holds(std::int32_t step) const {  // from 0; kNone is in none
    return step != trace::kNone && step + 1 >= first && step + 1 <= last;
  }
};

// "3", "2..4", "..4" or "2.."; throws ConfigError for anything else.
StepRange step_range(const std::string& text);

// "steps-2-to-4", as a part of a name.
std::string part_name(const StepRange& range);

// Reduces a trace to some of its steps. Removes allocations that were neither made nor alive in one
// of them, with their frees. Segments stay. False, without a change, if the program had none of
// these steps. Throws TraceError for an inconsistent trace.
//
// Remaining allocations keep their categories, and the bytes alive at every event of the steps are
// unchanged. So are those at a failure if the trace ends out of memory, whose step is kept, too.
// Figures cover only these steps (Trace::counted_steps).
bool keep_steps(trace::Trace& trace, const StepRange& range);

}  // namespace peakbench::programs
