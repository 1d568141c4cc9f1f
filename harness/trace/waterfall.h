// Where a saving came from: from one peak to another by category and phase, exactly.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trace/anatomy.h"

namespace peakbench::trace {

// The bytes alive at one event, by category and by the phase that allocated them. Slack counts in
// the phase of its block.
using Parts = std::array<std::array<std::int64_t, kPhaseCount>, kCategoryCount>;

Parts parts_at(const Trace& trace, const std::vector<Lifetime>& lifetimes, std::uint64_t event,
               int space = kOwnSpace);
std::int64_t total(const Parts& parts);

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

Waterfall waterfall(const Parts& from, const Parts& to);

}  // namespace peakbench::trace
