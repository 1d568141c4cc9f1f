// Where a saving came from: from one peak to another by category and phase, exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/breakdown.h"

namespace peakbench::trace {

struct WaterfallStep {
  Category category = Category::kParameter;
  Phase phase = Phase::kBuild;
  std::int64_t difference_bytes = 0;  // never 0
  std::int64_t level_bytes = 0;       // after this step
};

// from_bytes plus all differences is to_bytes. Savings first, then what was added; each the largest
// first.
struct Waterfall {
  std::int64_t from_bytes = 0, to_bytes = 0;
  std::vector<WaterfallStep> steps;
};

Waterfall waterfall(const Breakdown& from, const Breakdown& to);

}  // namespace peakbench::trace
