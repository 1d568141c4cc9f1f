// Gradients on the CPU, for backward passes that only CUDA has as operators: the forward pass is
// computed again, and differentiated.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <vector>

namespace peakbench::values {

// While it lives, the calling thread's computations can be differentiated, although they are hidden
// from the program (value.h). The program's hooks for saved tensors and its inference mode have no
// effect. Throws if the program has anomaly detection on: PyTorch would then call Python.
class Differentiable {
 public:
  Differentiable();
  Differentiable(const Differentiable&) = delete;
  Differentiable& operator=(const Differentiable&) = delete;
  ~Differentiable();

 private:
  c10::InferenceMode no_inference_{false};
  c10::impl::ForceDispatchKeyGuard keys_;
  at::AutoGradMode grad_{true};
  bool hooks_were_off_;
};

// What the output depends on; undefined stays undefined.
at::Tensor leaf_of(const at::Tensor& tensor);

// Gradients of the leaves, given the outputs' gradients (undefined: none). Undefined for leaves
// that no output depends on. Does not use PyTorch's engine: that needs threads and Python's lock,
// and may be running the program's own backward pass.
std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& outputs,
                                     const std::vector<at::Tensor>& given,
                                     const std::vector<at::Tensor>& leaves);

}  // namespace peakbench::values
