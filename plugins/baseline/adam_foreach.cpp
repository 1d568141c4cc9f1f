#include <ATen/ATen.h>

#include <cmath>

#include "adam.h"

namespace peakbench::baseline {

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

}  // namespace peakbench::baseline
