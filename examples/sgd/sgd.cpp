// A strategy from outside: SGD with momentum in Adam's place.
//
// Three parts, as in every strategy: what it does (an object for a slot of the recipe), the
// function that puts the object there, and how Peakbench finds it (the entry, at the end). What
// Peakbench must know before any of this runs is in plugin.json.
#include <ATen/ATen.h>

#include "peakbench/errors.h"
#include "peakbench/plugin.h"
#include "peakbench/state_map.h"

namespace {

using namespace peakbench;

// The slot `update_rule`: PyTorch's SGD (torch/optim/sgd.py). Every operator works in place, so an
// update needs no memory beyond its state.
class Sgd : public UpdateRule {
 public:
  Sgd(double lr, double momentum) : lr_(lr), momentum_(momentum) {}

  // The schedule decides when this is called and with which parameters: all of them after backward,
  // or one at a time inside it. Grad mode is off.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    std::vector<at::Tensor> updated, directions;
    for (const auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined()) continue;
      updated.push_back(parameter);
      directions.push_back(momentum_ == 0 ? parameter.grad() : next_momentum(parameter));
    }
    if (updated.empty()) return;
    if (grouping == KernelGrouping::kFused)
      throw Unsupported("my-sgd has no fused kernel: leave fused-optimizer out");
    if (grouping == KernelGrouping::kForeach) {
      at::_foreach_add_(updated, directions, -lr_);
    } else {
      for (std::size_t i = 0; i < updated.size(); ++i) updated[i].add_(directions[i], -lr_);
    }
  }

  // With this the report shows `optimizer_state` instead of nameless memory.
  void visit_state(const StateVisitor& visit) override {
    for (auto& [parameter, buffer] : momentum_buffers_) visit(parameter, "momentum_buffer", buffer);
  }
  void forget(const at::Tensor& parameter) override { momentum_buffers_.forget(parameter); }

 private:
  // State is made at a parameter's first update, as torch.optim does; so the first step's peak is
  // another than the second's.
  const at::Tensor& next_momentum(const at::Tensor& parameter) {
    if (at::Tensor* buffer = momentum_buffers_.find(parameter))
      return buffer->mul_(momentum_).add_(parameter.grad());
    return momentum_buffers_.of(parameter, [&] { return parameter.grad().detach().clone(); });
  }

  double lr_, momentum_;
  StateMap<at::Tensor> momentum_buffers_;
};

// Called once, after the model is built. Only fills the recipe. Options are complete and of their
// declared types and ranges here; reading one that plugin.json does not declare is an error. A
// strategy that cannot work with this model throws Unsupported with the reason; the case's outcome
// is then `unsupported`.
void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.update_rule =
      std::make_shared<Sgd>(context.options.number("lr"), context.options.number("momentum"));
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
