// Adam(fused=True): one kernel does the whole update, so that nothing is computed beside the
// parameters. The kernel is the update rule's; one that has none ends the case as unsupported.
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

class FusedOptimizer : public Strategy {
 public:
  void apply(Recipe& recipe, Model& model) override {
    recipe.kernel_grouping = KernelGrouping::kFused;
  }
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<FusedOptimizer>();
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::make)
