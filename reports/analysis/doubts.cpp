#include "reports/analysis/doubts.h"

#include <algorithm>

namespace peakbench::analysis {

using result::Verdict;

std::string main_reason(const Verdict& verdict) {
  if (!verdict.reasons.empty()) return verdict.reasons.front();
  return verdict.conditions.empty() ? "" : verdict.conditions.front();
}

std::size_t tightest(const std::vector<const Verdict*>& verdicts) {
  const auto has_less_room = [](const Verdict* a, const Verdict* b) {
    return a->workspace_room_bytes &&
           (!b->workspace_room_bytes || *a->workspace_room_bytes < *b->workspace_room_bytes);
  };
  return static_cast<std::size_t>(std::ranges::min_element(verdicts, has_less_room) -
                                  verdicts.begin());
}

}  // namespace peakbench::analysis
