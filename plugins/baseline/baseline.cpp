// Fills every slot with what PyTorch does by default.
#include "adam.h"
#include "peakbench/plugin.h"

namespace peakbench::baseline {
namespace {

// The ordinary schedule: one update of all parameters once backward has finished.
class AfterBackward : public Schedule {
 public:
  void after_backward(Training& training) override { training.update_all(); }
};

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  AdamOptions options{.lr = context.options.number("lr")};
  if (model.default_update_rule() == DefaultUpdateRule::kAdamW) options.weight_decay = 1e-2;
  recipe.update_rule = std::make_shared<Adam>(options);
  recipe.schedule = std::make_shared<AfterBackward>();
  recipe.micro_batches = 1;
}

}  // namespace
}  // namespace peakbench::baseline

PEAKBENCH_STRATEGY_PLUGIN(peakbench::baseline::apply)
