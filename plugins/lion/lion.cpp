// Lion in Adam's place: one moment where Adam has two, and the sign of an interpolation of momentum
// and gradient as the update. Source: "Symbolic Discovery of Optimization Algorithms", algorithm 2,
// https://arxiv.org/abs/2302.06675. PyTorch has none; the operators are chosen so that an update
// has one temporary of a tensor's size (single) or of all tensors' (foreach).
#include <ATen/ATen.h>

#include "peakbench/gradient_groups.h"
#include "peakbench/plugin.h"
#include "peakbench/state_map.h"

namespace peakbench {
namespace {

class Lion : public UpdateRule {
 public:
  explicit Lion(const Options& options)
      : lr_(options.number("lr")),
        beta1_(options.number("beta1")),
        beta2_(options.number("beta2")),
        weight_decay_(options.number("weight_decay")) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    if (grouping == KernelGrouping::kFused)
      throw Unsupported("lion has no fused kernel: it updates with foreach or single kernels");
    for (GradientGroup& group : gradient_groups(parameters, grouping)) {
      std::vector<at::Tensor> exp_avgs;
      for (const at::Tensor& parameter : group.parameters)
        exp_avgs.push_back(exp_avgs_.of(parameter, [&] { return at::zeros_like(parameter); }));
      grouping == KernelGrouping::kForeach ? foreach (group, exp_avgs) : single(group, exp_avgs);
    }
  }
  void visit_state(const StateVisitor& visit) override {
    for (auto& [parameter, exp_avg] : exp_avgs_) visit(parameter, "exp_avg", exp_avg);
  }
  void forget(const at::Tensor& parameter) override { exp_avgs_.forget(parameter); }

 private:
  void single(GradientGroup& group, std::vector<at::Tensor>& exp_avgs) const {
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      at::Tensor& parameter = group.parameters[i];
      const at::Tensor& gradient = group.gradients[i];
      if (weight_decay_ != 0) parameter.mul_(1 - lr_ * weight_decay_);
      parameter.add_(exp_avgs[i].lerp(gradient, 1 - beta1_).sign_(), -lr_);
      exp_avgs[i].lerp_(gradient, 1 - beta2_);
    }
  }
  void foreach (GradientGroup& group, std::vector<at::Tensor> & exp_avgs) const {
    if (weight_decay_ != 0) at::_foreach_mul_(group.parameters, 1 - lr_ * weight_decay_);
    std::vector<at::Tensor> updates = at::_foreach_lerp(exp_avgs, group.gradients, 1 - beta1_);
    at::_foreach_sign_(updates);
    at::_foreach_add_(group.parameters, updates, -lr_);
    updates.clear();
    at::_foreach_lerp_(exp_avgs, group.gradients, 1 - beta2_);
  }

  double lr_, beta1_, beta2_, weight_decay_;
  StateMap<at::Tensor> exp_avgs_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.update_rule = std::make_shared<Lion>(context.options);
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
