#include <ATen/ATen.h>

#include "adafactor.h"

namespace peakbench::adafactor {
namespace {

using Tensors = std::vector<at::Tensor>;
using Scalars = std::vector<at::Scalar>;

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

}  // namespace

void adafactor_foreach(AdafactorGroup& group, const AdafactorOptions& options) {
  const double eps1 = machine_epsilon(group.parameters.front().scalar_type());
  // Lives on from the matrices to the vectors, as the name does in _adafactor.py.
  Tensors updates;
  for (AdafactorGroup& part : by_dimensions(group)) update_part(part, eps1, options, updates);
}

}  // namespace peakbench::adafactor
