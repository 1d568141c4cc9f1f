// Which steps of a program stay in its trace: long programs then leave small files. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "trace/trace.h"

namespace peakbench::programs {

// As steps are told: the first one is 1. Both ends are in it.
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

// Leaves out what neither was allocated in one of the steps nor was alive in one, with its end.
// What stays has the category that it had, and at every event of the steps as much is alive as was;
// so it is at the failure where the trace ends out of memory, whose step stays as well. Segments
// stay. Figures are of these steps alone (Trace::counted_steps). False, and nothing is left out,
// where the program had no such step. Throws TraceError where the trace does not add up.
bool keep_steps(trace::Trace& trace, const StepRange& range);

}  // namespace peakbench::programs
