// Gradients on the CPU, for backward passes that only CUDA has as operators: the forward pass is
// computed again, and differentiated.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <vector>

namespace peakbench::values {

// While it lives, what the calling thread computes can be differentiated, although it computes
// unseen (value.h); neither the program's hooks for saved tensors nor its inference mode are in
// the way. Throws where the program looks for anomalies: each call is then noted in Python.
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

// The leaves' gradients, given those of the outputs (undefined: none). Those of leaves that no
// output depends on are undefined. By itself, not by PyTorch's engine, which wants threads and
// Python's lock, and may be at work on the program's own backward pass right now.
std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& outputs,
                                     const std::vector<at::Tensor>& given,
                                     const std::vector<at::Tensor>& leaves);

}  // namespace peakbench::values
