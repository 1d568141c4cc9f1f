// Where one line of a program holds most of a peak, as `trainer.train()` does: the lines of
// libraries that it calls.
#pragma once

#include <vector>

#include "trace/lines.h"

namespace peakbench::analysis {

// By the innermost line that is not PyTorch's, whoever wrote it, the largest first; empty where no
// line of `own` (lines_at) holds more than half, and where these lines are those.
std::vector<trace::LineShare> called_lines(const trace::Trace& trace,
                                           const std::vector<trace::Lifetime>& lifetimes,
                                           std::uint64_t event,
                                           const std::vector<trace::LineShare>& own);

}  // namespace peakbench::analysis
