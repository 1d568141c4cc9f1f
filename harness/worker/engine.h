// The autograd engine of this process: LibTorch's own, which asks the SDK's stack for saved-tensor
// hooks.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace peakbench::worker {

// Before any autograd use; there is one engine a process. LibTorch keeps Python's hooks in a Python
// engine; without Python this is the place it leaves for them (torch/csrc/autograd/engine.h,
// get_default_saved_variable_hooks).
void install_engine();

// The model whose parameters and buffers saved-tensor hooks are told apart by. Before each forward
// that may have others than the last.
void set_weights(const torch::nn::Module& module);
// Is its storage a parameter's or a buffer's of that model?
bool is_weight(const at::Tensor& tensor);

}  // namespace peakbench::worker
