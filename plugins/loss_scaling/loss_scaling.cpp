// Loss scaling: gradients that fp16 cannot hold are moved to where it can.
#include <ATen/core/grad_mode.h>

#include "grad_scaler.h"
#include "peakbench/plugin.h"

namespace peakbench::loss_scaling {
namespace {

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
