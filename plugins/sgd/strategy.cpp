// SGD in Adam's place: no second moment, and without momentum no state at all.
#include "peakbench/plugin.h"
#include "sgd.h"

namespace peakbench::sgd {
namespace {

class SgdStrategy : public Strategy {
 public:
  explicit SgdStrategy(const Options& options)
      : options_{.lr = options.number("lr"),
                 .momentum = options.number("momentum"),
                 .weight_decay = options.number("weight_decay"),
                 .nesterov = options.boolean("nesterov")} {}

  void apply(Recipe& recipe, Model& model) override {
    recipe.update_rule = std::make_shared<Sgd>(options_);
  }

 private:
  SgdOptions options_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<SgdStrategy>(context.options);
}

}  // namespace
}  // namespace peakbench::sgd

PEAKBENCH_STRATEGY_PLUGIN(peakbench::sgd::make)
