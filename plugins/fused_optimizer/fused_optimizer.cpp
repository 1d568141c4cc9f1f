// Adam(fused=True): one kernel does the whole update, so that nothing is computed beside the
// parameters. The kernel is the update rule's; one that has none ends the case as unsupported.
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

void apply(const StrategyContext&, Recipe& recipe, Model&) {
  recipe.kernel_grouping = KernelGrouping::kFused;
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
