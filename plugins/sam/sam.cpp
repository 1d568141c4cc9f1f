// Sharpness-aware minimization: the gradient is taken where the loss is worst nearby.
//
// https://arxiv.org/abs/2010.01412, equations 2 and 3, algorithm 1: with g the gradient at w, all
// of it one vector, e = rho g / |g|; the update is made at w with the gradient at w + e.
#include <ATen/ATen.h>

#include "peakbench/observer.h"
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

  at::Tensor run(Training& training, const ForwardBackward& forward_backward,
                 std::int64_t step) override {
    const at::Tensor loss = forward_backward();
    const auto weights = climb(training.parameters());
    forward_backward();
    go_back(weights);
    return loss;
  }

 private:
  using Weights = std::vector<std::pair<at::Tensor, at::Tensor>>;  // parameter, copy

  // Moves to w + e, in the gradients' own memory, and gives the gradients away. Returns w, since
  // (w + e) - e is not w in floating point.
  Weights climb(const std::vector<Parameter>& parameters) const {
    at::NoGradGuard no_grad;
    // rho / (|g| + 1e-12), in the two operators that Python makes of it.
    const at::Tensor inverse = (norm_of_gradients(parameters) + kNoDivisionByZero).reciprocal();
    const at::Tensor scale = inverse * rho_;
    Weights weights;
    for (const auto& [name, parameter] : parameters) {
      at::Tensor& gradient = parameter.mutable_grad();
      if (!gradient.defined()) continue;
      weights.emplace_back(parameter, parameter.detach().clone());
      if (observer() != nullptr)
        observer()->name_storage(weights.back().second, StorageRole::kOptimizerState,
                                 name + ".sam_copy");
      gradient.mul_(scale);
      parameter.add_(gradient);
      gradient.reset();
    }
    return weights;
  }

  static void go_back(const Weights& weights) {
    at::NoGradGuard no_grad;
    for (const auto& [parameter, copy] : weights) parameter.copy_(copy);
  }

  double rho_;
};

class Sam : public Strategy {
 public:
  explicit Sam(const Options& options) : rho_(options.number("rho")) {}

  void apply(Recipe& recipe, Model& model) override {
    recipe.step_runner = std::make_shared<SharpnessAware>(rho_);
  }

 private:
  double rho_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<Sam>(context.options);
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::make)
