// What is alive at one event, exactly, in the cells that a saving is told in.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::trace {

// Bytes by category and by the phase that allocated them. Slack counts in the phase of its block.
using Breakdown = std::array<std::array<std::int64_t, kPhaseCount>, kCategoryCount>;

// Throws std::out_of_range where there is no such event.
Breakdown breakdown_at(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                       std::uint64_t event, int space = kOwnSpace);
std::int64_t total(const Breakdown& breakdown);
std::array<std::int64_t, kCategoryCount> by_category(const Breakdown& breakdown);

}  // namespace peakbench::trace
