#include "lion.h"

#include <ATen/ATen.h>

#include "peakbench/errors.h"
#include "peakbench/gradient_groups.h"

namespace peakbench::lion {
namespace {

void lion_single(GradientGroup& group, std::vector<at::Tensor>& exp_avgs,
                 const LionOptions& options) {
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    at::Tensor& parameter = group.parameters[i];
    const at::Tensor& gradient = group.gradients[i];
    if (options.weight_decay != 0) parameter.mul_(1 - options.lr * options.weight_decay);
    parameter.add_(exp_avgs[i].lerp(gradient, 1 - options.beta1).sign_(), -options.lr);
    exp_avgs[i].lerp_(gradient, 1 - options.beta2);
  }
}

void lion_foreach(GradientGroup& group, std::vector<at::Tensor>& exp_avgs,
                  const LionOptions& options) {
  if (options.weight_decay != 0)
    at::_foreach_mul_(group.parameters, 1 - options.lr * options.weight_decay);
  std::vector<at::Tensor> updates = at::_foreach_lerp(exp_avgs, group.gradients, 1 - options.beta1);
  at::_foreach_sign_(updates);
  at::_foreach_add_(group.parameters, updates, -options.lr);
  updates.clear();
  at::_foreach_lerp_(exp_avgs, group.gradients, 1 - options.beta2);
}

}  // namespace

void Lion::update(const std::vector<Parameter>& parameters, KernelGrouping grouping) {
  if (grouping == KernelGrouping::kFused)
    throw Unsupported("lion has no fused kernel: it updates with foreach or single kernels");
  for (GradientGroup& group : gradient_groups(parameters, grouping)) {
    std::vector<at::Tensor> exp_avgs;
    for (const at::Tensor& parameter : group.parameters)
      exp_avgs.push_back(exp_avgs_.of(parameter, [&] { return at::zeros_like(parameter); }));
    grouping == KernelGrouping::kForeach ? lion_foreach(group, exp_avgs, options_)
                                         : lion_single(group, exp_avgs, options_);
  }
}

void Lion::visit_state(const StateVisitor& visit) {
  for (auto& [parameter, exp_avg] : exp_avgs_) visit(parameter, "exp_avg", exp_avg);
}

void Lion::forget(const at::Tensor& parameter) { exp_avgs_.forget(parameter); }

}  // namespace peakbench::lion
