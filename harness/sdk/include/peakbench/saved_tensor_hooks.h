// Saved-tensor hooks without Python: what autograd keeps for backward goes through the active
// hooks, as with torch.autograd.graph.saved_tensors_hooks; unlike there, hooks may leave a tensor
// to those around them. The autograd engine that asks for them belongs to the worker.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

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
  // Sees every tensor that autograd saves. `is_weight`: its storage is a parameter's or a buffer's
  // of the model, so that keeping something else saves nothing. Null leaves the tensor to the next
  // hooks outwards; where nobody takes it, autograd keeps it as it is.
  virtual std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor, bool is_weight) = 0;
};

// Pushes on this thread; pops when destroyed. The innermost hooks are asked first.
class SavedTensorHooksScope {
 public:
  explicit SavedTensorHooksScope(std::shared_ptr<SavedTensorHooks> hooks);
  ~SavedTensorHooksScope();
  SavedTensorHooksScope(const SavedTensorHooksScope&) = delete;
  SavedTensorHooksScope& operator=(const SavedTensorHooksScope&) = delete;
};

// The hooks of this thread, the innermost last. For the worker's engine.
const std::vector<std::shared_ptr<SavedTensorHooks>>& current_saved_tensor_hooks();

}  // namespace peakbench
