// Adam-mini (https://arxiv.org/abs/2406.16793): where Adam has a learning rate for each value,
// blocks of values share one. A block here is a row of a matrix (an output neuron's weights, a
// token's embedding), or a whole vector. The paper gives queries and keys a block for each head,
// which is fewer still; rows need no knowledge of the model.
//
// An update rule with more than one tensor of state; examples/sgd explains the parts of a plugin.
#include <ATen/ATen.h>

#include <cmath>

#include "peakbench/errors.h"
#include "peakbench/plugin.h"
#include "peakbench/state_map.h"

namespace {

using namespace peakbench;

// (rows, values of a row): what a second moment is the mean over.
at::Tensor as_rows(const at::Tensor& tensor) {
  return tensor.dim() > 1 ? tensor.flatten(1) : tensor.view({1, -1});
}

struct State {
  at::Tensor step;        // float32 scalar on the CPU
  at::Tensor exp_avg;     // as the parameter
  at::Tensor exp_avg_sq;  // (rows, 1)

  explicit State(const at::Tensor& parameter)
      : step(at::scalar_tensor(0.0, at::kFloat)),
        exp_avg(at::zeros_like(parameter)),
        exp_avg_sq(at::zeros({as_rows(parameter).size(0), 1}, parameter.options())) {}
};

class AdamMini : public UpdateRule {
 public:
  AdamMini(double lr, double weight_decay) : lr_(lr), weight_decay_(weight_decay) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    if (grouping == KernelGrouping::kFused)
      throw Unsupported("adam-mini has no fused kernel: leave fused-optimizer out");
    for (const auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined()) continue;
      update_one(parameter, states_.of(parameter, [&] { return State(parameter); }));
    }
  }

  void visit_state(const StateVisitor& visit) override {
    for (auto& [parameter, state] : states_) {
      visit(parameter, "step", state.step);
      visit(parameter, "exp_avg", state.exp_avg);
      visit(parameter, "exp_avg_sq", state.exp_avg_sq);
    }
  }
  void forget(const at::Tensor& parameter) override { states_.forget(parameter); }

 private:
  // Beside its state it takes a few values a row: nothing here has the parameter's size.
  void update_one(const at::Tensor& parameter, State& state) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
    state.step.add_(1);
    const double step = state.step.item<double>();
    const at::Tensor& gradient = parameter.grad();
    if (weight_decay_ != 0) parameter.mul_(1 - lr_ * weight_decay_);
    state.exp_avg.lerp_(gradient, 1 - kBeta1);
    state.exp_avg_sq.lerp_(mean_square(as_rows(gradient)), 1 - kBeta2);
    at::Tensor step_sizes = state.exp_avg_sq.sqrt();
    step_sizes.div_(std::sqrt(1 - std::pow(kBeta2, step))).add_(kEps);
    step_sizes.reciprocal_().mul_(lr_ / (1 - std::pow(kBeta1, step)));
    as_rows(parameter).addcmul_(as_rows(state.exp_avg), step_sizes, -1);
  }

  // Of each row, without a tensor of squares.
  static at::Tensor mean_square(const at::Tensor& rows) {
    at::Tensor norms = at::linalg_vector_norm(rows, 2, /*dim=*/1, /*keepdim=*/true);
    return norms.square_().div_(rows.size(1));
  }

  double lr_, weight_decay_;
  StateMap<State> states_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.update_rule = std::make_shared<AdamMini>(context.options.number("lr"),
                                                  context.options.number("weight_decay"));
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
