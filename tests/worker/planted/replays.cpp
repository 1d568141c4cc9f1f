// A runner that replays, and strategies whose steps are not all the same: what a replay would
// repeat is the first one's. tests/worker/replay_test.py says what is found.
#include <ATen/ATen.h>

#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

// As a captured graph: two passes in the first step, one to warm up; later steps have its gradients
// again.
struct Replays : StepRunner {
  at::Tensor run(Training& training, Passes& passes, std::int64_t step) override {
    if (step == 0) {
      passes.forward_backward({.last = false});
      for (const Parameter& parameter : training.parameters())
        parameter.tensor.mutable_grad().reset();
      loss_ = passes.forward_backward();
      for (const Parameter& parameter : training.parameters())
        gradients_.push_back(parameter.tensor.grad());
    }
    for (std::size_t i = 0; i < gradients_.size(); ++i)
      training.parameters()[i].tensor.mutable_grad() = gradients_[i];
    return loss_;
  }

  at::Tensor loss_;
  std::vector<at::Tensor> gradients_;
};

// Layer dropping, by turns instead of by chance.
struct DropsBlocks : BlockWrapper {
  std::vector<at::Tensor> run(std::size_t index, std::size_t count, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    if (index == 0) ++pass_;
    return pass_ % count == index ? std::vector{inputs.front()} : block(inputs);
  }
  std::size_t pass_ = 0;
};

// Another parameter is trained from the third step on.
struct ChangesSet : StepListener {
  void on_step_begin(Training& training, std::int64_t step) override {
    const auto& parameters = training.parameters();
    training.set_trainable(parameters.front(), step >= 2);
    training.set_trainable(parameters.back(), step < 2);
  }
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const std::string& id = context.id;
  if (id == "replays") recipe.step_runner = std::make_shared<Replays>();
  if (id == "drops-blocks")
    recipe.block_wrappers.emplace_back(BlockPlace::kOffload, std::make_shared<DropsBlocks>());
  if (id == "changes-set") recipe.step_listeners.push_back(std::make_shared<ChangesSet>());
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
