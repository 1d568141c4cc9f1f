#include "reports/analysis/steps.h"

#include <algorithm>

namespace peakbench::analysis {

Steps::Steps(const trace::Trace& trace) {
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    const auto step = trace.events[i].step;
    if (step == trace::kNone || !trace::is_counted(trace, step)) continue;
    if (!numbers_.empty() && step <= numbers_.back()) continue;
    begins_.push_back(i);
    numbers_.push_back(step);
  }
}

std::optional<std::size_t> Steps::index_of(std::int32_t step) const {
  const auto at = std::lower_bound(numbers_.begin(), numbers_.end(), step);
  if (at == numbers_.end() || *at != step) return std::nullopt;
  return static_cast<std::size_t>(at - numbers_.begin());
}

std::size_t Steps::first_after(std::uint64_t event) const {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), event) -
                                  begins_.begin());
}

}  // namespace peakbench::analysis
