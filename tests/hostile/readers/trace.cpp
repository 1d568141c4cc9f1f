// A trace: read, and what reports make of it.
#include "readers/readers.h"
#include "trace/alive.h"
#include "trace/lifetimes.h"
#include "trace/phases.h"
#include "trace/summary.h"
#include "trace/timeline.h"
#include "trace/trace_file.h"

namespace peakbench::hostile {

void read_trace_file(const std::string& path) {
  auto trace = trace::read_trace(path);
  const auto lifetimes = trace::lifetimes(trace);
  trace::summarise(trace, lifetimes);
  trace::timeline(trace, lifetimes, 200);
  trace::phase_spans(trace);
  trace::decide_phases(trace);
}

}  // namespace peakbench::hostile
