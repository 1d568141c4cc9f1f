// A program's peak in three short lines: when it was, what fills it, and one thing to try.
#pragma once

#include <string>
#include <vector>

#include "trace/lifetimes.h"
#include "trace/trace.h"

namespace peakbench::analysis {

struct PeakBrief {
  // "tensors fill 0.115 GiB of it (allocated), in backward of step 2", it being what the program
  // reserves; where the program ended out of memory, what was asked for then.
  std::string when;
  // "train.py:12 45% (activation), train.py:9 30% (gradient), ...": of the peak or, where memory
  // ran out, of what was allocated then. Where one line of the program holds more than half, what
  // it calls is named, too. Empty where no call stacks were recorded.
  std::string fills;
  // What looks like a mistake (why.h), else the line of PyTorch against the largest part
  // (strategies_against.h). Empty: neither is known.
  std::string advice;
};

// Pure; names from the trace stand as they are.
PeakBrief peak_brief(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes);

}  // namespace peakbench::analysis
