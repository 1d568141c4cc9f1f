// Gradient accumulation: activations of one micro-batch at a time. The worker splits the batch and
// weights the losses, so that the gradients add up to the batch's.
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

class Accumulation : public Strategy {
 public:
  explicit Accumulation(const Options& options) : steps_(options.integer("steps")) {}

  void apply(Recipe& recipe, Model& model) override { recipe.micro_batches = steps_; }

 private:
  std::int64_t steps_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<Accumulation>(context.options);
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::make)
