#include "muon.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "orthogonalise.h"

namespace peakbench::muon {

void Muon::update(const std::vector<Parameter>& parameters, KernelGrouping grouping) {
  std::vector<at::Tensor> matrices;
  std::vector<Parameter> rest;
  for (const Parameter& parameter : parameters) {
    if (!parameter.tensor.grad().defined()) continue;
    if (parameter.tensor.dim() == 2 && is_hidden_(parameter))
      matrices.push_back(parameter.tensor);
    else
      rest.push_back(parameter);
  }
  update_matrices(matrices);
  if (!rest.empty()) rest_->update(rest, grouping);
}

void Muon::update_matrices(const std::vector<at::Tensor>& matrices) {
  for (const at::Tensor& matrix : matrices)
    momentum_buffers_.of(matrix, [&] { return at::zeros_like(matrix.grad()); });
  // Lives on into the next turn until it is assigned again, as the name does in _muon.py.
  at::Tensor update;
  for (const at::Tensor& matrix : matrices) {
    const at::Tensor& gradient = matrix.grad();
    at::Tensor& buffer = *momentum_buffers_.find(matrix);
    buffer.lerp_(gradient, 1 - options_.momentum);
    update = options_.nesterov ? gradient.lerp(buffer, options_.momentum) : buffer;
    update = orthogonalise(update, options_.newton_schulz_steps);
    matrix.mul_(1 - options_.lr * options_.weight_decay);
    matrix.add_(update, -adjusted_lr(matrix));
  }
}

double Muon::adjusted_lr(const at::Tensor& matrix) const {
  const auto rows = static_cast<double>(matrix.size(0));
  const auto columns = static_cast<double>(matrix.size(1));
  return options_.lr * (options_.match_rms_adamw ? 0.2 * std::sqrt(std::max(rows, columns))
                                                 : std::sqrt(std::max(1.0, rows / columns)));
}

void Muon::visit_state(const StateVisitor& visit) {
  for (auto& [matrix, buffer] : momentum_buffers_) visit(matrix, "momentum_buffer", buffer);
  rest_->visit_state(visit);
}

void Muon::forget(const at::Tensor& parameter) {
  momentum_buffers_.forget(parameter);
  rest_->forget(parameter);
}

}  // namespace peakbench::muon
