// Adafactor in Adam's place: the second moment of a matrix as its rows' and columns' means.
#include "adafactor.h"
#include "peakbench/plugin.h"

namespace peakbench::adafactor {
namespace {

class AdafactorStrategy : public Strategy {
 public:
  explicit AdafactorStrategy(const Options& options)
      : options_{.lr = options.number("lr"),
                 .beta2_decay = options.number("beta2_decay"),
                 .eps2 = options.number("eps2"),
                 .d = options.number("d"),
                 .weight_decay = options.number("weight_decay"),
                 .foreach = options.boolean("foreach")} {}

  void apply(Recipe& recipe, Model& model) override {
    recipe.update_rule = std::make_shared<Adafactor>(options_);
  }

 private:
  AdafactorOptions options_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<AdafactorStrategy>(context.options);
}

}  // namespace
}  // namespace peakbench::adafactor

PEAKBENCH_STRATEGY_PLUGIN(peakbench::adafactor::make)
