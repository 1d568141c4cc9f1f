#include "adam.h"

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <utility>

#include "peakbench/errors.h"

namespace peakbench::baseline {

AdamState& Adam::state_of(const at::Tensor& parameter) {
  const auto [found, is_new] = index_.try_emplace(parameter.unsafeGetTensorImpl(), states_.size());
  if (is_new) {
    states_.emplace_back(parameter,
                         AdamState{at::scalar_tensor(0.0, at::kFloat), at::zeros_like(parameter),
                                   at::zeros_like(parameter)});
  }
  return states_[found->second].second;
}

void Adam::visit_state(const StateVisitor& visit) const {
  for (const auto& [parameter, state] : states_) {
    visit(parameter, "step", state.step);
    visit(parameter, "exp_avg", state.exp_avg);
    visit(parameter, "exp_avg_sq", state.exp_avg_sq);
  }
}

void Adam::update(const std::vector<at::Tensor>& parameters, KernelGrouping grouping) {
  // torch.optim groups by device and dtype before a multi-tensor kernel; one list in order for the
  // single-tensor loop.
  std::map<std::pair<std::string, at::ScalarType>, AdamGroup> groups;
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    const bool apart = grouping == KernelGrouping::kForeach;
    AdamGroup& group = groups[{apart ? parameter.device().str() : std::string(),
                               apart ? parameter.scalar_type() : at::ScalarType::Undefined}];
    const AdamState& state = state_of(parameter);
    group.parameters.push_back(parameter);
    group.gradients.push_back(parameter.grad());
    group.exp_avgs.push_back(state.exp_avg);
    group.exp_avg_sqs.push_back(state.exp_avg_sq);
    group.steps.push_back(state.step);
  }
  for (auto& [key, group] : groups) {
    switch (grouping) {
      case KernelGrouping::kForeach:
        adam_foreach(group, options_);
        break;
      case KernelGrouping::kSingle:
        adam_single(group, options_);
        break;
      case KernelGrouping::kFused:
        throw Unsupported("this Adam has no fused kernel grouping");
    }
  }
}

void adam_single(AdamGroup& group, const AdamOptions& options) {
  // Lives on into the next turn until it is assigned again, as the name does in adam.py: its bytes
  // are in the peak.
  at::Tensor denominator;
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    at::Tensor& parameter = group.parameters[i];
    const at::Tensor& gradient = group.gradients[i];
    group.steps[i].add_(1);
    if (options.weight_decay != 0) parameter.mul_(1 - options.lr * options.weight_decay);
    group.exp_avgs[i].lerp_(gradient, 1 - options.beta1);
    group.exp_avg_sqs[i].mul_(options.beta2).addcmul_(gradient, gradient, 1 - options.beta2);
    const double step = group.steps[i].item<double>();
    const double bias_correction1 = 1 - std::pow(options.beta1, step);
    const double bias_correction2_sqrt = std::pow(1 - std::pow(options.beta2, step), 0.5);
    denominator = (group.exp_avg_sqs[i].sqrt() / bias_correction2_sqrt).add_(options.eps);
    parameter.addcdiv_(group.exp_avgs[i], denominator, -(options.lr / bias_correction1));
  }
}

}  // namespace peakbench::baseline
