// Adam(foreach=False): saves about one parameter-size of temporaries in the optimizer step
// (pytorch#97712).
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

void apply(const StrategyContext&, Recipe& recipe, Model&) {
  recipe.kernel_grouping = KernelGrouping::kSingle;
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
