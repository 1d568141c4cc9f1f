// Saved-tensor hooks decide how the tensors that autograd saves for backward are kept. They work
// like torch.autograd.graph.saved_tensors_hooks, but without Python. Unlike there, a hook may leave
// a tensor to other hooks, and the hooks of a recipe form a chain. The worker owns the autograd
// engine that calls the hooks.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "peakbench/memory.h"

namespace peakbench {

// The object that replaces a saved tensor: `pack` returns it, and `unpack` restores the tensor from
// it. It is destroyed when autograd drops the saved tensor.
class SavedTensor {
 public:
  virtual ~SavedTensor() = default;
  // Returns the saved tensor. It is called on the thread that runs backward, so store what it needs
  // in the object, not in thread-local variables.
  virtual at::Tensor unpack() = 0;
  // Passes to `visit` the tensors that this object stores, so that hooks of later places can pack
  // them. For example, hooks can offload what other hooks have compressed.
  // - Visit the same tensors in the same order in each call.
  // - A tensor taken by a later hook is undefined until `unpack` is called, and is restored before
  //   that call.
  // - The default shows no tensor, so later hooks receive none.
  using HeldVisitor = std::function<void(at::Tensor& held)>;
  virtual void visit_held(const HeldVisitor& visit) {}
};

// Facts about a saved tensor. The texts live as long as the call.
struct SavedTensorFacts {
  // True: the tensor is in the storage of one of the model's parameters or buffers. That storage
  // stays allocated, so replacing the tensor frees no memory.
  bool is_weight = false;
  // The module and the operator that save the tensor, such as `encoder.layers.0.mlp` and
  // `aten::addmm`. Both are filled only if hooks ask for them (asks_where).
  // - `module` is empty outside all modules.
  // - `op` names no torch::autograd::Function, because these are not operators. For a tensor that
  //   such a function saves, `op` is the surrounding operator, or empty.
  std::string_view module = {}, op = {};
};

class SavedTensorHooks : public HoldsMemory {
 public:
  // Called with every tensor that autograd saves, with grad mode off. Null leaves the tensor to the
  // next hooks. If no hook takes a tensor, autograd keeps it unchanged.
  virtual std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                            const SavedTensorFacts& facts) = 0;
  // True: the facts contain `module` and `op`. The worker then follows each operator of forward,
  // which takes time.
  virtual bool asks_where() const { return false; }
};

// The places of saved-tensor hooks, in the order in which they pack. Unpacking runs in the reverse
// order.
// - The hooks of one place receive the tensors that the hooks of the place before store
//   (SavedTensor::visit_held).
// - A tensor that the hooks of one place leave is passed to the next place unchanged.
// - Of several hooks at one place, the first that takes a tensor has it.
enum class SavedTensorPlace { kCompress, kOffload };

// Makes hooks active on this thread until the scope is destroyed. The hooks of the innermost scope
// are asked first. Hooks of different scopes form no chain: a tensor that one of them takes is not
// passed on to the others.
class SavedTensorHooksScope {
 public:
  explicit SavedTensorHooksScope(std::shared_ptr<SavedTensorHooks> hooks);
  ~SavedTensorHooksScope();
  SavedTensorHooksScope(const SavedTensorHooksScope&) = delete;
  SavedTensorHooksScope& operator=(const SavedTensorHooksScope&) = delete;
};

// Returns the active hooks of this thread, the innermost last. The worker's engine uses it.
const std::vector<std::shared_ptr<SavedTensorHooks>>& current_saved_tensor_hooks();

}  // namespace peakbench
