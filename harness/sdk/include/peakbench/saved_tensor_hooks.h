// Saved-tensor hooks without Python: what autograd keeps for backward passes through the innermost
// active hooks, as torch.autograd.graph.saved_tensors_hooks does. The autograd engine that asks for
// them belongs to the worker.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace peakbench {

// What pack returns and unpack is given. Destroyed when autograd drops the saved tensor.
class SavedTensor {
 public:
  virtual ~SavedTensor() = default;
  virtual at::Tensor
  unpack() = 0;  // on the thread that runs backward: carry what you need, not thread-locals
};

class SavedTensorHooks {
 public:
  virtual ~SavedTensorHooks() = default;
  // Sees every tensor autograd saves, weights and their views included.
  virtual std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor) = 0;
};

// Pushes on this thread; pops when destroyed. Only the innermost hooks are asked.
class SavedTensorHooksScope {
 public:
  explicit SavedTensorHooksScope(std::shared_ptr<SavedTensorHooks> hooks);
  ~SavedTensorHooksScope();
  SavedTensorHooksScope(const SavedTensorHooksScope&) = delete;
  SavedTensorHooksScope& operator=(const SavedTensorHooksScope&) = delete;
};

// The innermost hooks of this thread, or null. For the worker's engine.
std::shared_ptr<SavedTensorHooks> current_saved_tensor_hooks();

}  // namespace peakbench
