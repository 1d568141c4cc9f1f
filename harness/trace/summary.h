// The Memory record of a whole trace.
#pragma once

#include <vector>

#include "result/case.h"
#include "trace/lifetimes.h"

namespace peakbench::trace {

// All but worker_peak_rss_bytes and context_bytes. Peaks are maxima over steps >= 0
// (`phases.build`: before them), the level at the start of a phase included (trace/maxima.h).
result::Memory summarise(const Trace& trace);
result::Memory summarise(const Trace& trace, const std::vector<Lifetime>& lifetimes);

}  // namespace peakbench::trace
