// SGD in Adam's place: no second moment, and without momentum no state at all. As torch.optim.SGD
// with no dampening, the same operators in the same order, so that state, temporaries and results
// are the same to the bit. Source: torch/optim/sgd.py, _single_tensor_sgd and _multi_tensor_sgd.
#include <ATen/ATen.h>

#include <algorithm>

#include "peakbench/gradient_groups.h"
#include "peakbench/plugin.h"
#include "peakbench/state_map.h"

namespace peakbench {
namespace {

// The buffer of each parameter of a group, undefined before its first update; none without
// momentum. A kernel makes those that are missing.
using Buffers = std::vector<at::Tensor>;

void advance(at::Tensor& buffer, const at::Tensor& gradient, double momentum) {
  if (buffer.defined())
    buffer.mul_(momentum).add_(gradient, 1);
  else
    buffer = gradient.detach().clone();  // not momentum times zero: as torch.optim starts
}

void advance_all(Buffers& buffers, const std::vector<at::Tensor>& gradients, double momentum) {
  const bool all = std::all_of(buffers.begin(), buffers.end(),
                               [](const at::Tensor& buffer) { return buffer.defined(); });
  if (all) {
    at::_foreach_mul_(buffers, momentum);
    at::_foreach_add_(buffers, gradients, 1);
  } else {
    for (std::size_t i = 0; i < buffers.size(); ++i) advance(buffers[i], gradients[i], momentum);
  }
}

class Sgd : public UpdateRule {
 public:
  explicit Sgd(const Options& options)
      : lr_(options.number("lr")),
        momentum_(options.number("momentum")),
        weight_decay_(options.number("weight_decay")),
        nesterov_(options.boolean("nesterov")) {
    if (nesterov_ && momentum_ == 0)
      throw OptionError("sgd: nesterov=true needs a momentum above 0, such as momentum=0.9");
  }

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    if (grouping == KernelGrouping::kFused)
      throw Unsupported("sgd has no fused kernel: it updates with foreach or single kernels");
    for (GradientGroup& group : gradient_groups(parameters, grouping)) {
      Buffers buffers;
      if (momentum_ != 0) {
        for (const at::Tensor& parameter : group.parameters)
          buffers.push_back(momentum_buffers_.of(parameter, [] { return at::Tensor(); }));
      }
      grouping == KernelGrouping::kForeach ? foreach (group, buffers) : single(group, buffers);
      for (std::size_t i = 0; i < buffers.size(); ++i)
        *momentum_buffers_.find(group.parameters[i]) = buffers[i];
    }
  }
  void visit_state(const StateVisitor& visit) override {
    for (auto& [parameter, buffer] : momentum_buffers_) visit(parameter, "momentum_buffer", buffer);
  }
  void forget(const at::Tensor& parameter) override { momentum_buffers_.forget(parameter); }

 private:
  void single(GradientGroup& group, Buffers& buffers) const {
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      at::Tensor& parameter = group.parameters[i];
      at::Tensor direction = group.gradients[i];
      if (weight_decay_ != 0) direction = direction.add(parameter, weight_decay_);
      if (momentum_ != 0) {
        advance(buffers[i], direction, momentum_);
        direction = nesterov_ ? direction.add(buffers[i], momentum_) : buffers[i];
      }
      parameter.add_(direction, -lr_);
    }
  }
  void foreach (GradientGroup& group, Buffers & buffers) const {
    std::vector<at::Tensor> directions = group.gradients;
    if (weight_decay_ != 0)
      directions = at::_foreach_add(directions, group.parameters, weight_decay_);
    if (momentum_ != 0) {
      advance_all(buffers, directions, momentum_);
      // In place: without weight decay these are the gradients themselves, as in torch.optim.
      if (nesterov_)
        at::_foreach_add_(directions, buffers, momentum_);
      else
        directions = buffers;
    }
    at::_foreach_add_(group.parameters, directions, -lr_);
  }

  double lr_, momentum_, weight_decay_;
  bool nesterov_;
  StateMap<at::Tensor> momentum_buffers_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.update_rule = std::make_shared<Sgd>(context.options);
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
