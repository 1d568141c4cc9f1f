// Gradient accumulation: activations of one micro-batch at a time. The worker splits the batch and
// weights the losses, so that the gradients add up to the batch's.
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.micro_batches = context.options.integer("steps");
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
