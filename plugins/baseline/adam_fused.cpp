#include <ATen/ATen.h>

#include "adam.h"

namespace peakbench::baseline {

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

}  // namespace peakbench::baseline
