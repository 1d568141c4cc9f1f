#include "adam.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

namespace peakbench::baseline {

namespace {

AdamState new_state(const at::Tensor& parameter, KernelGrouping grouping) {
  const bool beside = grouping == KernelGrouping::kFused;
  at::Tensor step = beside ? at::zeros(at::IntArrayRef(), parameter.options().dtype(at::kFloat))
                           : at::scalar_tensor(0.0, at::kFloat);
  return {std::move(step), at::zeros_like(parameter), at::zeros_like(parameter)};
}

}  // namespace

void Adam::visit_state(const StateVisitor& visit) {
  for (auto& [parameter, state] : states_) {
    visit(parameter, "step", state.step);
    visit(parameter, "exp_avg", state.exp_avg);
    visit(parameter, "exp_avg_sq", state.exp_avg_sq);
  }
}

void Adam::forget(const at::Tensor& parameter) { states_.forget(parameter); }

void Adam::update(const std::vector<Parameter>& parameters, KernelGrouping grouping) {
  // All states first, as torch.optim's _init_group does.
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined())
      states_.of(parameter, [&] { return new_state(parameter, grouping); });
  }
  for (GradientGroup& tensors : gradient_groups(parameters, grouping)) {
    AdamGroup group = with_state(std::move(tensors));
    switch (grouping) {
      case KernelGrouping::kForeach:
        adam_foreach(group, options_);
        break;
      case KernelGrouping::kSingle:
        adam_single(group, options_);
        break;
      case KernelGrouping::kFused:
        adam_fused(group, options_);
        break;
    }
  }
}

AdamGroup Adam::with_state(GradientGroup tensors) {
  AdamGroup group{std::move(tensors), {}, {}, {}};
  for (const at::Tensor& parameter : group.parameters) {
    const AdamState& state = *states_.find(parameter);
    group.exp_avgs.push_back(state.exp_avg);
    group.exp_avg_sqs.push_back(state.exp_avg_sq);
    group.steps.push_back(state.step);
  }
  return group;
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
