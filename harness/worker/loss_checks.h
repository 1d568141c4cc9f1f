// What a loss must be: a scalar, and of parameters that are registered.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

#include "peakbench/batch.h"
#include "worker/plugin_call.h"

namespace peakbench::worker {

// Throws std::logic_error where backward could not begin at it.
at::Tensor scalar(at::Tensor loss);

// Looks in the graphs of two steps for a tensor that autograd gives a gradient to and that is no
// parameter of the module tree: nothing updates it. What a step makes for itself, as checkpointing
// does, is not there in the next.
class RegisteredParameters {
 public:
  // Throws PluginError, in the second step.
  void check(const at::Tensor& loss, const torch::nn::Module& module, const Batch& batch,
             const Owner& owner, std::int64_t step);

 private:
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  std::vector<WeakTensor> of_first_step_;
};

}  // namespace peakbench::worker
