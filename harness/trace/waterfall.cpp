#include "trace/waterfall.h"

#include <algorithm>
#include <cstdlib>
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

Waterfall waterfall(const Parts& from, const Parts& to) {
  Waterfall result{total(from), total(to), {}};
  for (std::size_t category = 0; category < kCategoryCount; ++category)
    for (std::size_t phase = 0; phase < kPhaseCount; ++phase)
      if (const auto difference = to[category][phase] - from[category][phase]; difference != 0)
        result.steps.push_back(
            {static_cast<Category>(category), static_cast<Phase>(phase), difference, 0});
  std::stable_sort(result.steps.begin(), result.steps.end(),
                   [](const WaterfallStep& a, const WaterfallStep& b) {
                     const bool saves_a = a.difference_bytes < 0, saves_b = b.difference_bytes < 0;
                     if (saves_a != saves_b) return saves_a;
                     return std::abs(a.difference_bytes) > std::abs(b.difference_bytes);
                   });
  auto level = result.from_bytes;
  for (auto& step : result.steps) step.level_bytes = level += step.difference_bytes;
  return result;
}

}  // namespace peakbench::trace
