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

void adam_foreach(AdamGroup& group, const AdamOptions& options) {
  // One wrapped number for all steps, as adam.py does for host steps.
  at::_foreach_add_(group.steps, at::scalar_tensor(1.0, at::kFloat), 1.0);
  if (options.weight_decay != 0) {
    at::_foreach_mul_(group.parameters, 1 - options.lr * options.weight_decay);
  }
  at::_foreach_lerp_(group.exp_avgs, group.gradients, 1 - options.beta1);
  at::_foreach_mul_(group.exp_avg_sqs, options.beta2);
  at::_foreach_addcmul_(group.exp_avg_sqs, group.gradients, group.gradients, 1 - options.beta2);

  std::vector<at::Scalar> step_sizes, bias_corrections2_sqrt;
  for (const at::Tensor& step_tensor : group.steps) {
    const double step = step_tensor.item<double>();
    step_sizes.emplace_back((options.lr / (1 - std::pow(options.beta1, step))) * -1);
    bias_corrections2_sqrt.emplace_back(std::pow(1 - std::pow(options.beta2, step), 0.5));
  }
  // The one copy of all parameters that makes foreach cost memory (pytorch#97712).
  std::vector<at::Tensor> denominators = at::_foreach_sqrt(group.exp_avg_sqs);
  at::_foreach_div_(denominators, bias_corrections2_sqrt);
  at::_foreach_add_(denominators, options.eps);
  at::_foreach_addcdiv_(group.parameters, group.exp_avgs, denominators, step_sizes);
}

void adam_fused(AdamGroup& group, const AdamOptions& options) {
  at::_foreach_add_(group.steps, 1);
  // One kernel reads and writes everything: no temporaries.
  const auto kernel =
      options.weight_decay == 0 ? &at::_ops::_fused_adam_::call : &at::_ops::_fused_adamw_::call;
  const at::TensorList no_maxima;  // amsgrad's
  kernel(group.parameters, group.gradients, group.exp_avgs, group.exp_avg_sqs, no_maxima,
         group.steps, options.lr, options.beta1, options.beta2, options.weight_decay, options.eps,
         /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/std::nullopt,
         /*found_inf=*/std::nullopt);
  // The one in-place operator that does not count itself (LibTorch 2.11).
  for (const at::Tensor& parameter : group.parameters)
    parameter.unsafeGetTensorImpl()->bump_version();
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

}  // namespace peakbench::baseline
