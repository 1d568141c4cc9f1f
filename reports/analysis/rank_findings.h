#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace peakbench::analysis {

// Memory of a rank on a GPU that is another rank's own, as torch.load and collectives of objects
// leave it there: each such rank has a CUDA context on that GPU, too.

struct RankTrace {
  std::int32_t rank = 0;
  const trace::Trace* trace = nullptr;
};

// A sentence for each line that made such memory, with what to do; empty where there is none. Pure;
// names from the traces are not escaped.
std::string on_other_ranks(const std::vector<RankTrace>& ranks);

}  // namespace peakbench::analysis
