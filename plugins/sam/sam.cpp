// Sharpness-aware minimization: the gradient is taken where the loss is worst nearby.
//
// https://arxiv.org/abs/2010.01412, equations 2 and 3, algorithm 1: with g the gradient at w, all
// of it one vector, e = rho g / |g|; the update is made at w with the gradient at w + e.
#include <ATen/ATen.h>

#include "peakbench/plugin.h"

namespace peakbench {
namespace {

constexpr double kNoDivisionByZero = 1e-12;

// |g| over all parameters that have a gradient.
at::Tensor norm_of_gradients(const std::vector<Parameter>& parameters) {
  std::vector<at::Tensor> norms;
  for (const auto& [name, parameter] : parameters)
    if (parameter.grad().defined()) norms.push_back(at::linalg_vector_norm(parameter.grad(), 2));
  if (norms.empty())
    throw Unsupported("sam: no gradient is left when backward has finished; it needs all of them");
  return at::linalg_vector_norm(at::stack(norms), 2);
}

class SharpnessAware : public StepRunner {
 public:
  explicit SharpnessAware(double rho) : rho_(rho) {}

  at::Tensor run(Training& training, Passes& passes, std::int64_t step) override {
    const at::Tensor loss = passes.forward_backward({.last = false});
    climb(training.parameters());
    passes.forward_backward();
    go_back();
    return loss;
  }

  void visit_memory(const MemoryVisitor& visit) override {
    for (const auto& [parameter, copy] : weights_)
      visit(parameter.name + ".copy", copy, StorageRole::kOptimizerState);
  }

 private:
  // Moves to w + e, in the gradients' own memory, and gives the gradients away. Keeps w, since
  // (w + e) - e is not w in floating point.
  void climb(const std::vector<Parameter>& parameters) {
    at::NoGradGuard no_grad;
    // rho / (|g| + 1e-12), in the two operators that Python makes of it.
    const at::Tensor inverse = (norm_of_gradients(parameters) + kNoDivisionByZero).reciprocal();
    const at::Tensor scale = inverse * rho_;
    for (const Parameter& one : parameters) {
      const at::Tensor& parameter = one.tensor;
      at::Tensor& gradient = parameter.mutable_grad();
      if (!gradient.defined()) continue;
      weights_.emplace_back(one, parameter.detach().clone());
      gradient.mul_(scale);
      parameter.add_(gradient);
      gradient.reset();
    }
  }

  void go_back() {
    at::NoGradGuard no_grad;
    for (const auto& [parameter, copy] : weights_) parameter.tensor.copy_(copy);
    weights_.clear();
  }

  double rho_;
  std::vector<std::pair<Parameter, at::Tensor>> weights_;  // during a step: parameter, copy
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.step_runner = std::make_shared<SharpnessAware>(context.options.number("rho"));
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
