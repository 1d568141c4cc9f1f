// Loss scaling: gradients that fp16 cannot hold are moved to where it can.
//
// torch.amp.GradScaler: the same operators in the same order. Source: torch/amp/grad_scaler.py,
// scale, unscale_, step and update.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <unordered_map>
#include <vector>

#include "peakbench/errors.h"
#include "peakbench/gradient_groups.h"
#include "peakbench/plugin.h"

namespace peakbench::loss_scaling {
namespace {

using Copies = std::unordered_map<at::Device, at::Tensor>;

// A copy also where the device is the same, as the original has it (_MultiDeviceReplicator).
at::Tensor& copy_for(at::Device device, const at::Tensor& tensor, Copies& copies) {
  at::Tensor& copy = copies[device];
  if (!copy.defined())
    copy = tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true, /*copy=*/true);
  return copy;
}

class GradScaler {
 public:
  GradScaler(double init_scale, std::int64_t growth_interval)
      : init_scale_(init_scale), growth_interval_(growth_interval) {}

  // loss: a scalar -> a scalar. Makes the scale at its first call, on the loss's device.
  at::Tensor scale(const at::Tensor& loss) {
    if (!scale_.defined()) {
      scale_ = at::full({}, init_scale_, loss.options().dtype(at::kFloat));
      growth_tracker_ = at::full({}, 0, loss.options().dtype(at::kInt));
    }
    return loss * scale_;
  }
  // Divides the gradients in place by the scale, then adapts the scale. False: some value is not
  // finite, and the update must not happen. Reads one number a device back.
  bool unscale(const std::vector<Parameter>& parameters) {
    at::Tensor inverse = scale_.to(at::kDouble);  // a division in fp32 may be imprecise
    inverse = inverse.reciprocal();
    inverse = inverse.to(at::kFloat);
    const at::Tensor none_found = at::full({}, 0.0, scale_.options());
    Copies inverses;
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
  // What `unscale` found, 4 bytes a device, lives as long as GradScaler.update() is not called.
  void end_step() { found_.clear(); }
  void visit_memory(const MemoryVisitor& visit) const {
    visit("loss_scale", scale_, StorageRole::kOptimizerState);
    visit("growth_tracker", growth_tracker_, StorageRole::kOptimizerState);
  }

 private:
  bool adapt() {
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

  static constexpr double kGrowth = 2.0, kBackoff = 0.5;

  double init_scale_;
  std::int64_t growth_interval_;
  at::Tensor scale_;           // fp32 scalar on the device
  at::Tensor growth_tracker_;  // int32 scalar: steps since the scale last changed
  Copies found_;               // 1 where a gradient is not finite, else 0
};

class ScaleLoss : public LossTransform {
 public:
  explicit ScaleLoss(std::shared_ptr<GradScaler> scaler) : scaler_(std::move(scaler)) {}
  at::Tensor apply(const at::Tensor& loss, const Pass&) override { return scaler_->scale(loss); }
  void visit_memory(const MemoryVisitor& visit) override { scaler_->visit_memory(visit); }

 private:
  std::shared_ptr<GradScaler> scaler_;
};

class UnscaleGradients : public GradientTransform {
 public:
  explicit UnscaleGradients(std::shared_ptr<GradScaler> scaler) : scaler_(std::move(scaler)) {}
  bool apply(const std::vector<Parameter>& parameters) override {
    at::NoGradGuard no_grad;
    return scaler_->unscale(parameters);
  }

 private:
  std::shared_ptr<GradScaler> scaler_;
};

class EndOfStep : public StepContext {
 public:
  explicit EndOfStep(std::shared_ptr<GradScaler> scaler) : scaler_(std::move(scaler)) {}
  std::shared_ptr<void> enter_step() override {
    return {nullptr, [scaler = scaler_](void*) { scaler->end_step(); }};
  }

 private:
  std::shared_ptr<GradScaler> scaler_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const auto scaler = std::make_shared<GradScaler>(context.options.number("init_scale"),
                                                   context.options.integer("growth_interval"));
  recipe.loss_transforms.push_back(std::make_shared<ScaleLoss>(scaler));
  recipe.gradient_transforms.push_back(std::make_shared<UnscaleGradients>(scaler));
  recipe.step_contexts.push_back(std::make_shared<EndOfStep>(scaler));
}

}  // namespace
}  // namespace peakbench::loss_scaling

PEAKBENCH_STRATEGY_PLUGIN(peakbench::loss_scaling::apply)
