// Lion in Adam's place: one moment where Adam has two.
#include "lion.h"
#include "peakbench/plugin.h"

namespace peakbench::lion {
namespace {

class LionStrategy : public Strategy {
 public:
  explicit LionStrategy(const Options& options)
      : options_{.lr = options.number("lr"),
                 .beta1 = options.number("beta1"),
                 .beta2 = options.number("beta2"),
                 .weight_decay = options.number("weight_decay")} {}

  void apply(Recipe& recipe, Model& model) override {
    recipe.update_rule = std::make_shared<Lion>(options_);
  }

 private:
  LionOptions options_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<LionStrategy>(context.options);
}

}  // namespace
}  // namespace peakbench::lion

PEAKBENCH_STRATEGY_PLUGIN(peakbench::lion::make)
