// A schedule that updates each parameter inside backward, as soon as its gradient is complete, and
// then frees the gradient. Several strategies share it. The gradients of all parameters never exist
// at the same time. Source: PyTorch's tutorial on Tensor.register_post_accumulate_grad_hook.
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
  void after_backward(Training& training) override {}  // every update has already happened
  // Each update has a single parameter, so there are no tensors to group.
  KernelGrouping default_grouping() const override { return KernelGrouping::kSingle; }
};

}  // namespace peakbench
