// Cases whose loss is not finite: their figures are of a training that fails.
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
    list.push_back({.strategy = printable(stack_text(result->spec)),
                    .what = std::isnan(*first) ? "not a number" : "infinite",
                    .step = grouped(first - losses.begin() + 1)});
  }
  return list;
}

}  // namespace peakbench::reports
