// The optimizer step inside backward: no buffer of gradients is ever held. Method: PyTorch's
// tutorial on Tensor.register_post_accumulate_grad_hook (one optimizer a parameter, step and drop
// the gradient in the hook).
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

class InBackward : public Schedule {
 public:
  void prepare(Training& training) override {
    training.on_gradient([&training](const Parameter& parameter, bool) {
      training.update({parameter});
      parameter.tensor.mutable_grad().reset();
    });
  }
  void after_backward(Training& training) override {}  // every update has happened
  // One parameter at a time has nothing to group.
  KernelGrouping default_grouping() const override { return KernelGrouping::kSingle; }
};

class FusedInBackward : public Strategy {
 public:
  void apply(Recipe& recipe, Model& model) override {
    recipe.schedule = std::make_shared<InBackward>();
  }
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<FusedInBackward>();
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::make)
