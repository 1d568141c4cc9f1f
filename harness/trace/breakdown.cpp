#include "trace/breakdown.h"

#include <numeric>
#include <stdexcept>

namespace peakbench::trace {

Breakdown breakdown_at(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                       std::uint64_t event, int space) {
  if (event >= trace.events.size()) throw std::out_of_range("breakdown_at: no such event");
  space = space_or_own(trace, space);
  Breakdown breakdown{};
  for (const auto& lifetime : lifetimes) {
    if (lifetime.first > event) break;
    const auto& alloc = trace.events[lifetime.first];
    if (lifetime.last <= event || alloc.space != space) continue;
    const auto phase = static_cast<std::size_t>(alloc.phase);
    breakdown[static_cast<std::size_t>(lifetime.category)][phase] += alloc.requested_bytes;
    breakdown[static_cast<std::size_t>(Category::kAllocatorSlack)][phase] +=
        alloc.block_bytes - alloc.requested_bytes;
  }
  return breakdown;
}

std::int64_t total(const Breakdown& breakdown) {
  std::int64_t sum = 0;
  for (const auto& phases : breakdown)
    for (const auto bytes : phases) sum += bytes;
  return sum;
}

std::array<std::int64_t, kCategoryCount> by_category(const Breakdown& breakdown) {
  std::array<std::int64_t, kCategoryCount> sums{};
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    sums[i] = std::accumulate(breakdown[i].begin(), breakdown[i].end(), std::int64_t{0});
  return sums;
}

}  // namespace peakbench::trace
