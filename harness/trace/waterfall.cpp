#include "trace/waterfall.h"

#include <algorithm>
#include <cstdlib>

namespace peakbench::trace {

Waterfall waterfall(const Breakdown& from, const Breakdown& to) {
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
