// Fills every slot with what PyTorch does by default.
#include "adam.h"
#include "after_backward.h"
#include "peakbench/plugin.h"

namespace peakbench::baseline {
namespace {

class Baseline : public Strategy {
 public:
  explicit Baseline(const Options& options) : lr_(options.number("lr")) {}

  void apply(Recipe& recipe, Model& model) override {
    AdamOptions options{.lr = lr_};
    if (model.default_update_rule() == DefaultUpdateRule::kAdamW) options.weight_decay = 1e-2;
    recipe.update_rule = std::make_shared<Adam>(options);
    recipe.schedule = std::make_shared<AfterBackward>();
    recipe.micro_batches = 1;
  }

 private:
  double lr_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<Baseline>(context.options);
}

}  // namespace
}  // namespace peakbench::baseline

PEAKBENCH_STRATEGY_PLUGIN(peakbench::baseline::make)
