#include "adamw_low_bit.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "peakbench/errors.h"

namespace peakbench::adamw_low_bit {
namespace {

// Values [begin, begin + parameter.numel()) of a parameter.
void update_part(at::Tensor parameter, const at::Tensor& gradient_part, std::int64_t begin,
                 double step, AdamWState& state, const AdamWOptions& options) {
  const std::int64_t end = begin + parameter.numel();
  at::Tensor gradient = gradient_part.to(at::kFloat);
  at::Tensor exp_avg = state.exp_avg->read(begin, end);
  exp_avg.lerp_(gradient, 1 - options.beta1);
  state.exp_avg->write(begin, exp_avg);
  at::Tensor denominator = state.exp_avg_sq->read(begin, end);
  denominator.mul_(options.beta2).addcmul_(gradient, gradient, 1 - options.beta2);
  gradient.reset();
  state.exp_avg_sq->write(begin, denominator);
  // From what was computed, not from what is kept of it.
  const double bias_correction1 = 1 - std::pow(options.beta1, step);
  const double bias_correction2 = 1 - std::pow(options.beta2, step);
  denominator.sqrt_().div_(std::sqrt(bias_correction2)).add_(options.eps);
  at::Tensor updated = parameter.to(at::kFloat);  // the parameter itself where that is its dtype
  updated.mul_(1 - options.lr * options.weight_decay);
  updated.addcdiv_(exp_avg, denominator, -(options.lr / bias_correction1));
  parameter.copy_(updated);
}

}  // namespace

void AdamWLowBit::update(const std::vector<Parameter>& parameters, KernelGrouping grouping) {
  if (grouping == KernelGrouping::kFused)
    throw Unsupported("the fused kernel reads moments as tensors; here they are quantised");
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.grad().defined()) continue;
    AdamWState& state = states_.of(parameter, [&] {
      return AdamWState{at::scalar_tensor(0.0, at::kFloat), make_moment(parameter, exp_avg_),
                        make_moment(parameter, exp_avg_sq_)};
    });
    update_one(parameter, state);
  }
}

void AdamWLowBit::update_one(const at::Tensor& parameter, AdamWState& state) {
  state.step.add_(1);
  const double step = state.step.item<double>();
  // Blocks go by the order of a contiguous tensor: one in another format (channels_last) is copied.
  const at::Tensor values = parameter.reshape(-1), gradient = parameter.grad().reshape(-1);
  for (std::int64_t begin = 0; begin < values.numel(); begin += kValuesAtOnce) {
    const std::int64_t end = std::min(begin + kValuesAtOnce, values.numel());
    update_part(values.slice(0, begin, end), gradient.slice(0, begin, end), begin, step, state,
                options_);
  }
  if (!parameter.is_contiguous()) parameter.copy_(values.view(parameter.sizes()));
}

void AdamWLowBit::visit_state(const StateVisitor& visit) {
  for (auto& [parameter, state] : states_) {
    visit(parameter, "step", state.step);
    for (const auto& [name, moment] : {std::pair("exp_avg", state.exp_avg.get()),
                                       std::pair("exp_avg_sq", state.exp_avg_sq.get())})
      moment->visit([&, name = std::string(name)](const std::string& suffix, at::Tensor& tensor) {
        visit(parameter, name + suffix, tensor);
      });
  }
}

void AdamWLowBit::forget(const at::Tensor& parameter) { states_.forget(parameter); }

}  // namespace peakbench::adamw_low_bit
