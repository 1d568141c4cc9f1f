// The optimizer step inside backward, one parameter at a time, whatever the update rule.
#include "peakbench/plugin.h"
#include "peakbench/update_in_backward.h"

namespace peakbench {
namespace {

class FusedInBackward : public Strategy {
 public:
  void apply(Recipe& recipe, Model& model) override {
    recipe.schedule = std::make_shared<UpdateInBackward>();
  }
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<FusedInBackward>();
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::make)
