#include "result/step_times.h"

#include <algorithm>
#include <cstddef>

namespace peakbench::result {

StepTimes step_times_of(std::vector<std::int64_t> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  // The smallest step that at least `percent` of all steps do not exceed.
  const auto quantile = [&](std::size_t percent) {
    return times[(times.size() * percent + 99) / 100 - 1];
  };
  return {.min = times.front(),
          .median = quantile(50),
          .p90 = quantile(90),
          .count = static_cast<std::int64_t>(times.size())};
}

}  // namespace peakbench::result
