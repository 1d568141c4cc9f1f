// The schedule of strategies that update each parameter inside backward, as soon as its gradient is
// complete, and drop the gradient: no buffer of gradients is ever held. Method: PyTorch's tutorial
// on Tensor.register_post_accumulate_grad_hook.
#pragma once

#include "peakbench/recipe.h"

namespace peakbench {

class UpdateInBackward : public Schedule {
 public:
  void prepare(Training& training) override {
    training.on_gradient([&training](const Parameter& parameter, const Pass&) {
      training.update({parameter});
      parameter.tensor.mutable_grad().reset();
    });
  }
  void after_backward(Training& training) override {}  // every update has happened
  // One parameter at a time has nothing to group.
  KernelGrouping default_grouping() const override { return KernelGrouping::kSingle; }
};

}  // namespace peakbench
