#include <ATen/ATen.h>

#include "adafactor.h"

namespace peakbench::adafactor {

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

}  // namespace peakbench::adafactor
