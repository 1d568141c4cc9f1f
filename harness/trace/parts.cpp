#include "trace/parts.h"

#include <numeric>
#include <stdexcept>

namespace peakbench::trace {

Parts parts_at(const Trace& trace, const std::vector<Lifetime>& lifetimes, std::uint64_t event,
               int space) {
  if (event >= trace.events.size()) throw std::out_of_range("parts_at: no such event");
  space = space_or_own(trace, space);
  Parts parts{};
  for (const auto& lifetime : lifetimes) {
    if (lifetime.first > event) break;
    const auto& alloc = trace.events[lifetime.first];
    if (lifetime.last <= event || alloc.space != space) continue;
    const auto phase = static_cast<std::size_t>(alloc.phase);
    parts[static_cast<std::size_t>(lifetime.category)][phase] += alloc.requested_bytes;
    parts[static_cast<std::size_t>(Category::kAllocatorSlack)][phase] +=
        alloc.block_bytes - alloc.requested_bytes;
  }
  return parts;
}

std::int64_t total(const Parts& parts) {
  std::int64_t sum = 0;
  for (const auto& phases : parts)
    for (const auto bytes : phases) sum += bytes;
  return sum;
}

std::array<std::int64_t, kCategoryCount> by_category(const Parts& parts) {
  std::array<std::int64_t, kCategoryCount> sums{};
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    sums[i] = std::accumulate(parts[i].begin(), parts[i].end(), std::int64_t{0});
  return sums;
}

}  // namespace peakbench::trace
