#include "grad_scaler.h"

#include <ATen/ATen.h>

#include "peakbench/errors.h"
#include "peakbench/gradient_groups.h"

namespace peakbench::loss_scaling {
namespace {

// A copy also where the device is the same, as the original has it (_MultiDeviceReplicator).
template <typename Copies>
at::Tensor& copy_for(at::Device device, const at::Tensor& tensor, Copies& copies) {
  at::Tensor& copy = copies[device];
  if (!copy.defined())
    copy = tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true, /*copy=*/true);
  return copy;
}

}  // namespace

at::Tensor GradScaler::scale(const at::Tensor& loss) {
  if (!scale_.defined()) {
    scale_ = at::full({}, init_scale_, loss.options().dtype(at::kFloat));
    growth_tracker_ = at::full({}, 0, loss.options().dtype(at::kInt));
  }
  return loss * scale_;
}

bool GradScaler::unscale(const std::vector<Parameter>& parameters) {
  at::Tensor inverse = scale_.to(at::kDouble);  // a division in fp32 may be imprecise
  inverse = inverse.reciprocal();
  inverse = inverse.to(at::kFloat);
  const at::Tensor none_found = at::full({}, 0.0, scale_.options());
  std::unordered_map<at::Device, at::Tensor> inverses;
  for (auto& gradients : grouped_gradients(parameters)) {
    const at::Device device = gradients.front().device();
    if (!device.is_cpu() && gradients.front().scalar_type() == at::kBFloat16)
      throw Unsupported(
          "loss-scaling: gradients are bf16, which has the range of fp32 and needs no scaling; "
          "PyTorch's kernel has none for them. Train in fp32 (--dtype fp32), with autocast");
    at::Tensor& found = copy_for(device, none_found, found_);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found,
                                                   copy_for(device, inverse, inverses));
  }
  return adapt();
}

void GradScaler::visit_memory(const MemoryVisitor& visit) const {
  visit("loss_scale", scale_, StorageRole::kOptimizerState);
  visit("growth_tracker", growth_tracker_, StorageRole::kOptimizerState);
}

bool GradScaler::adapt() {
  bool finite = true;
  at::Tensor any;
  for (const auto& [device, found] : found_) {
    finite = finite && found.item<float>() == 0;
    const at::Tensor here = found.to(scale_.device());
    any = any.defined() ? any + here : here;
  }
  if (any.defined())
    at::_amp_update_scale_(scale_, growth_tracker_, any, kGrowth, kBackoff, growth_interval_);
  return finite;
}

}  // namespace peakbench::loss_scaling
