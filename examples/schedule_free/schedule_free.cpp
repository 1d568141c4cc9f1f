// Schedule-free SGD (https://arxiv.org/abs/2405.15682). Of its three sequences
//
//   z' = z - lr g(y)                SGD's own
//   x' = (1 - c) x + c z'           their average, c = 1 / (number of the step); what is evaluated
//   y' = momentum x' + (1 - momentum) z'      where gradients are computed
//
// only z is state: the model's parameters are y while they are trained, and x follows from both.
// Eliminating x gives the in-place updates below, as the authors' code has them. Two kernels, for
// many tensors or for one, as a rule should have where torch.optim does; examples/sgd explains the
// parts of a plugin.
#include <ATen/ATen.h>

#include "peakbench/errors.h"
#include "peakbench/gradient_groups.h"
#include "peakbench/plugin.h"
#include "peakbench/state_map.h"

namespace {

using namespace peakbench;

struct State {
  at::Tensor z;  // as the parameter
  std::int64_t steps = 0;
};

class ScheduleFree : public UpdateRule {
 public:
  ScheduleFree(double lr, double momentum) : lr_(lr), momentum_(momentum) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    if (grouping == KernelGrouping::kFused)
      throw Unsupported("schedule-free has no fused kernel: leave fused-optimizer out");
    for (auto& group : gradient_groups(parameters, grouping)) {
      grouping == KernelGrouping::kForeach ? update_all(group) : update_each(group);
    }
  }

  void visit_state(const StateVisitor& visit) override {
    for (auto& [parameter, state] : states_) visit(parameter, "z", state.z);
  }
  void forget(const at::Tensor& parameter) override { states_.forget(parameter); }

 private:
  // Counts the step; a parameter that was not trained in all of them has its own count.
  double next_weight(State& state) { return 1.0 / static_cast<double>(++state.steps); }
  double gradient_factor(double weight) const { return lr_ * (momentum_ * (1 - weight) - 1); }
  State& state_of(const at::Tensor& parameter) {
    return states_.of(parameter, [&] { return State{parameter.detach().clone()}; });
  }

  void update_each(GradientGroup& group) {
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      const at::Tensor &y = group.parameters[i], &gradient = group.gradients[i];
      State& state = state_of(y);
      const double weight = next_weight(state);
      y.lerp_(state.z, weight);
      y.add_(gradient, gradient_factor(weight));
      state.z.add_(gradient, -lr_);
    }
  }

  void update_all(GradientGroup& group) {
    std::vector<at::Tensor> zs;
    std::vector<at::Scalar> weights, factors;
    for (const at::Tensor& y : group.parameters) {
      State& state = state_of(y);
      zs.push_back(state.z);
      weights.emplace_back(next_weight(state));
      factors.emplace_back(gradient_factor(weights.back().toDouble()));
    }
    at::_foreach_lerp_(group.parameters, zs, weights);
    at::_foreach_add_(zs, group.gradients, -lr_);
    // No operator adds with a factor a tensor; the gradients are not needed any more.
    at::_foreach_mul_(group.gradients, factors);
    at::_foreach_add_(group.parameters, group.gradients);
  }

  double lr_, momentum_;
  StateMap<State> states_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.update_rule = std::make_shared<ScheduleFree>(context.options.number("lr"),
                                                      context.options.number("momentum"));
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
