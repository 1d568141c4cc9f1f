// Adafactor in Adam's place: the second moment of a matrix as its rows' and columns' means.
#include "adafactor.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "peakbench/plugin.h"

namespace peakbench::adafactor {
namespace {

at::Tensor zeros_reduced(const at::Tensor& gradient, std::int64_t dim) {
  auto shape = gradient.sizes().vec();
  shape[shape.size() + dim] = 1;
  return at::zeros(shape, gradient.options());
}

AdafactorState new_state(const at::Tensor& gradient) {
  AdafactorState state;
  state.step = at::scalar_tensor(0.0, at::kFloat);
  if (gradient.dim() > 1) {
    state.row_var = zeros_reduced(gradient, -1);
    state.col_var = zeros_reduced(gradient, -2);
  } else {
    state.variance = at::zeros_like(gradient);
  }
  return state;
}

double root_mean_square(const at::Tensor& tensor) {
  return at::linalg_vector_norm(tensor, 2).item<double>() /
         std::sqrt(static_cast<double>(tensor.numel()));
}

}  // namespace

StepNumbers::StepNumbers(const at::Tensor& parameter, double step, const AdafactorOptions& options)
    : one_minus_beta2(std::pow(step, options.beta2_decay)),
      alpha(std::max(options.eps2, root_mean_square(parameter)) *
            std::min(options.lr, 1 / std::pow(step, 0.5))) {}

double clipped(double alpha, const at::Tensor& update, const AdafactorOptions& options) {
  const double norm = at::linalg_vector_norm(update, 2).item<double>();
  const double size = std::pow(static_cast<double>(update.numel()), 0.5);
  return -alpha / std::max(1.0, norm / (size * options.d));
}

double machine_epsilon(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return std::numeric_limits<double>::epsilon();
    case at::kHalf:
      return std::numeric_limits<at::Half>::epsilon();
    case at::kBFloat16:
      return std::numeric_limits<at::BFloat16>::epsilon();
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

at::Tensor norm_along(const at::Tensor& gradient, std::int64_t dim) {
  return at::linalg_vector_norm(gradient, 2, dim, /*keepdim=*/true);
}

void Adafactor::update(const std::vector<Parameter>& parameters, KernelGrouping grouping) {
  if (grouping == KernelGrouping::kFused)
    throw Unsupported("adafactor has no fused kernel: it updates with foreach or single kernels");
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined())
      states_.of(parameter, [&] { return new_state(parameter.grad()); });
  }
  const auto kernels = options_.foreach ? KernelGrouping::kForeach : KernelGrouping::kSingle;
  for (GradientGroup& tensors : gradient_groups(parameters, kernels)) {
    AdafactorGroup group{std::move(tensors), {}};
    for (const at::Tensor& parameter : group.parameters)
      group.states.push_back(*states_.find(parameter));
    options_.foreach ? adafactor_foreach(group, options_) : adafactor_single(group, options_);
  }
}

void Adafactor::visit_state(const StateVisitor& visit) {
  for (auto& [parameter, state] : states_) {
    visit(parameter, "step", state.step);
    if (state.variance.defined()) {
      visit(parameter, "variance", state.variance);
    } else {
      visit(parameter, "row_var", state.row_var);
      visit(parameter, "col_var", state.col_var);
    }
  }
}

void Adafactor::forget(const at::Tensor& parameter) { states_.forget(parameter); }

namespace {

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const Options& options = context.options;
  recipe.update_rule =
      std::make_shared<Adafactor>(AdafactorOptions{.lr = options.number("lr"),
                                                   .beta2_decay = options.number("beta2_decay"),
                                                   .eps2 = options.number("eps2"),
                                                   .d = options.number("d"),
                                                   .weight_decay = options.number("weight_decay"),
                                                   .foreach = options.boolean("foreach")});
}

}  // namespace
}  // namespace peakbench::adafactor

PEAKBENCH_STRATEGY_PLUGIN(peakbench::adafactor::apply)
