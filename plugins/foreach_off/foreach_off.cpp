// Adam(foreach=False): saves about one parameter-size of temporaries in the optimizer step
// (pytorch#97712).
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

class ForeachOff : public Strategy {
 public:
  void apply(Recipe& recipe, Model& model) override {
    recipe.kernel_grouping = KernelGrouping::kSingle;
  }
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<ForeachOff>();
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::make)
