// Adafactor in Adam's place: the second moment of a matrix as its rows' and columns' means.
//
// torch.optim.Adafactor, the same operators in the same order, so that state, temporaries and
// results are the same to the bit. Source: torch/optim/_adafactor.py, _single_tensor_adafactor and
// _multi_tensor_adafactor. Method: https://arxiv.org/abs/1804.04235
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "peakbench/gradient_groups.h"
#include "peakbench/plugin.h"
#include "peakbench/state_map.h"

namespace peakbench::adafactor {
namespace {

using Tensors = std::vector<at::Tensor>;
using Scalars = std::vector<at::Scalar>;

struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8;
  double eps2 = 1e-3;  // least root mean square of a parameter that a step is scaled by
  double d = 1;        // clipping threshold
  double weight_decay = 0;
  bool foreach = false;  // PyTorch's default, unlike other rules'
};

// Of a matrix (..., n, m), the mean squares of its rows (..., n, 1) and columns (..., 1, m); of a
// vector, `variance` of its size. `step` is a float32 scalar on the CPU.
struct AdafactorState {
  at::Tensor step, row_var, col_var, variance;
};

// Parameters with their gradients and state: lists of equal length.
struct AdafactorGroup : GradientGroup {
  std::vector<AdafactorState> states;
};

double root_mean_square(const at::Tensor& tensor) {
  return at::linalg_vector_norm(tensor, 2).item<double>() /
         std::sqrt(static_cast<double>(tensor.numel()));
}

// Numbers of one step that do not depend on the gradient.
struct StepNumbers {
  double one_minus_beta2, alpha;
  // Reads the parameter's norm back from its device.
  StepNumbers(const at::Tensor& parameter, double step, const AdafactorOptions& options)
      : one_minus_beta2(std::pow(step, options.beta2_decay)),
        alpha(std::max(options.eps2, root_mean_square(parameter)) *
              std::min(options.lr, 1 / std::pow(step, 0.5))) {}
};

double clipped(double alpha, const at::Tensor& update, const AdafactorOptions& options) {
  const double norm = at::linalg_vector_norm(update, 2).item<double>();
  const double size = std::pow(static_cast<double>(update.numel()), 0.5);
  return -alpha / std::max(1.0, norm / (size * options.d));
}

// The default of eps1.
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

// Along `dim`, kept as a dimension of one.
at::Tensor norm_along(const at::Tensor& gradient, std::int64_t dim) {
  return at::linalg_vector_norm(gradient, 2, dim, /*keepdim=*/true);
}

// Matrices and vectors apart, in the order of their first; either may be missing.
std::vector<AdafactorGroup> by_dimensions(const AdafactorGroup& group) {
  std::vector<AdafactorGroup> parts;
  const auto same = [](const at::Tensor& a, const at::Tensor& b) {
    return (a.dim() > 1) == (b.dim() > 1);
  };
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    const at::Tensor& gradient = group.gradients[i];
    std::size_t part = 0;
    while (part < parts.size() && !same(parts[part].gradients.front(), gradient)) ++part;
    if (part == parts.size()) parts.emplace_back();
    parts[part].parameters.push_back(group.parameters[i]);
    parts[part].gradients.push_back(gradient);
    parts[part].states.push_back(group.states[i]);
  }
  return parts;
}

Tensors collect(const AdafactorGroup& group, at::Tensor AdafactorState::*member) {
  Tensors tensors;
  for (const AdafactorState& state : group.states) tensors.push_back(state.*member);
  return tensors;
}

// Takes the mean squares along `dim` into the running means.
void advance(Tensors running, const Tensors& gradients, std::int64_t dim, const Scalars& weights) {
  Tensors means;
  Scalars sizes;
  for (const at::Tensor& gradient : gradients) {
    means.push_back(norm_along(gradient, dim));
    sizes.emplace_back(gradient.size(dim));
  }
  at::_foreach_mul_(means, means);
  at::_foreach_div_(means, sizes);
  at::_foreach_lerp_(running, means, weights);
}

Tensors matrix_variances(const AdafactorGroup& group, const Scalars& weights, double eps1) {
  const Tensors rows = collect(group, &AdafactorState::row_var);
  const Tensors columns = collect(group, &AdafactorState::col_var);
  advance(rows, group.gradients, -1, weights);
  advance(columns, group.gradients, -2, weights);
  Tensors variances, row_means;
  for (std::size_t i = 0; i < rows.size(); ++i)
    variances.push_back(at::matmul(rows[i], columns[i]));
  for (const at::Tensor& row : rows) row_means.push_back(row.mean(-2, /*keepdim=*/true));
  at::_foreach_clamp_min_(row_means, eps1);
  at::_foreach_div_(variances, row_means);
  return variances;
}

Tensors vector_variances(const AdafactorGroup& group, const Scalars& weights) {
  const Tensors running = collect(group, &AdafactorState::variance);
  {
    const Tensors squares = at::_foreach_mul(group.gradients, group.gradients);
    at::_foreach_lerp_(running, squares, weights);
  }
  Tensors variances;
  for (const at::Tensor& variance : running) variances.push_back(variance.clone());
  return variances;
}

// `updates`: of the part before, until this part's are computed.
void update_part(AdafactorGroup& group, double eps1, const AdafactorOptions& options,
                 Tensors& updates) {
  at::_foreach_add_(collect(group, &AdafactorState::step), at::scalar_tensor(1.0, at::kFloat), 1.0);
  Scalars weights, scales;
  std::vector<double> alphas;
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    const double step = group.states[i].step.item<double>();
    const StepNumbers numbers(group.parameters[i], step, options);
    weights.emplace_back(numbers.one_minus_beta2);
    alphas.push_back(numbers.alpha);
  }
  if (options.weight_decay != 0)
    at::_foreach_mul_(group.parameters, 1 - options.lr * options.weight_decay);
  Tensors variances = group.gradients.front().dim() > 1 ? matrix_variances(group, weights, eps1)
                                                        : vector_variances(group, weights);
  at::_foreach_clamp_min_(variances, eps1 * eps1);
  at::_foreach_rsqrt_(variances);
  at::_foreach_mul_(variances, group.gradients);
  updates = std::move(variances);
  for (std::size_t i = 0; i < updates.size(); ++i)
    scales.emplace_back(clipped(alphas[i], updates[i], options));
  at::_foreach_mul_(updates, scales);
  at::_foreach_add_(group.parameters, updates);
}

// Of one device and dtype.
void adafactor_foreach(AdafactorGroup& group, const AdafactorOptions& options) {
  const double eps1 = machine_epsilon(group.parameters.front().scalar_type());
  // Lives on from the matrices to the vectors, as the name does in _adafactor.py.
  Tensors updates;
  for (AdafactorGroup& part : by_dimensions(group)) update_part(part, eps1, options, updates);
}

void adafactor_single(AdafactorGroup& group, const AdafactorOptions& options) {
  // Each lives on into the next turn until it is assigned again, as the names do in
  // _adafactor.py: their bytes are in the peak.
  at::Tensor row_mean, col_mean, gradient_squared, variance, update;
  const double eps1 = machine_epsilon(group.parameters.front().scalar_type());
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    at::Tensor& parameter = group.parameters[i];
    const at::Tensor& gradient = group.gradients[i];
    AdafactorState& state = group.states[i];
    state.step.add_(1);
    const StepNumbers numbers(parameter, state.step.item<double>(), options);
    if (options.weight_decay != 0) parameter.mul_(1 - options.lr * options.weight_decay);
    if (gradient.dim() > 1) {
      row_mean = norm_along(gradient, -1).square_().div_(gradient.size(-1));
      state.row_var.lerp_(row_mean, numbers.one_minus_beta2);
      col_mean = norm_along(gradient, -2).square_().div_(gradient.size(-2));
      state.col_var.lerp_(col_mean, numbers.one_minus_beta2);
      variance = at::matmul(state.row_var, state.col_var);
      variance.div_(state.row_var.mean(-2, /*keepdim=*/true).clamp_(eps1));
    } else {
      gradient_squared = gradient * gradient;
      state.variance.lerp_(gradient_squared, numbers.one_minus_beta2);
      variance = state.variance.clone();
    }
    update = variance.clamp_(eps1 * eps1).rsqrt_();
    update.mul_(gradient);
    parameter.add_(update, clipped(numbers.alpha, update, options));
  }
}

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

class Adafactor : public UpdateRule {
 public:
  explicit Adafactor(AdafactorOptions options) : options_(options) {}
  // The kernels are the option's, not the grouping's, as foreach and single kernels round apart.
  // Throws Unsupported for kFused.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
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
  void visit_state(const StateVisitor& visit) override {
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
  void forget(const at::Tensor& parameter) override { states_.forget(parameter); }

 private:
  AdafactorOptions options_;
  StateMap<AdafactorState> states_;
};

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
