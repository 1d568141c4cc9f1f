// The optimizer step inside backward, one parameter at a time, whatever the update rule.
#include "peakbench/plugin.h"
#include "peakbench/update_in_backward.h"

namespace peakbench {
namespace {

void apply(const StrategyContext&, Recipe& recipe, Model&) {
  recipe.schedule = std::make_shared<UpdateInBackward>();
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
