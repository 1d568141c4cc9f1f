// Cases whose figures are not what they seem to be: a training that fails, one that is not as
// promised, memory of which some has not been seen.
#include <algorithm>
#include <cmath>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/report/view_group.h"

namespace peakbench::reports {

std::vector<NotFiniteView> not_finite_view(const Group& group) {
  std::vector<NotFiniteView> list;
  for (const result::CaseResult* result : group.cases) {
    const auto& losses = result->losses;
    const auto first =
        std::ranges::find_if(losses, [](double loss) { return !std::isfinite(loss); });
    if (first == losses.end()) continue;
    list.push_back({.strategy = printable(row_name(result->spec)),
                    .what = std::isnan(*first) ? "not a number" : "infinite",
                    .step = grouped(first - losses.begin() + 1)});
  }
  return list;
}

std::vector<BrokenPromiseView> broken_promises_view(const Group& group) {
  std::vector<BrokenPromiseView> list;
  for (const result::CaseResult* result : group.cases) {
    if (!ran(*result) || !breaks_promise(*result)) continue;
    const std::string& reason = result->equivalence->reason;
    list.push_back(
        {.strategy = printable(row_name(result->spec)),
         .reason = reason.empty() ? "it differs from the reference's" : printable(reason)});
  }
  return list;
}

std::vector<UnseenMemoryView> unseen_memory_view(const Group& group) {
  std::vector<UnseenMemoryView> list;
  for (const result::CaseResult* result : group.cases) {
    if (!result->memory || !result->memory->period) continue;
    const auto& [by, steps] = *result->memory->period;
    if (steps <= result->memory->steps) continue;
    list.push_back({.strategy = printable(row_name(result->spec)),
                    .by = printable(by),
                    .period = std::to_string(steps),
                    .steps = grouped(result->memory->steps)});
  }
  return list;
}

}  // namespace peakbench::reports
