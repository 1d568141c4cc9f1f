// Saved-tensor hooks without Python: what autograd keeps for backward goes through the active
// hooks, as with torch.autograd.graph.saved_tensors_hooks; unlike there, hooks may leave a tensor
// to others, and those of a recipe chain. The autograd engine that asks for them belongs to the
// worker.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "peakbench/memory.h"

namespace peakbench {

// What pack returns and unpack is given. Destroyed when autograd drops the saved tensor.
class SavedTensor {
 public:
  virtual ~SavedTensor() = default;
  virtual at::Tensor
  unpack() = 0;  // on the thread that runs backward: carry what you need, not thread-locals
  // Shows the tensors that it holds, to be packed by the hooks of the next places: what was made of
  // the saved tensor, in the same order at each call. One that they take is undefined until
  // `unpack` is called, which finds it in its place again. Shown none, they have nothing to do.
  using HeldVisitor = std::function<void(at::Tensor& held)>;
  virtual void visit_held(const HeldVisitor& visit) {}
};

// What is known of a saved tensor. The texts live as long as the call.
struct SavedTensorFacts {
  // Its storage is a parameter's or a buffer's of the model: keeping something else saves nothing.
  bool is_weight = false;
  // Which module and which operator save it: `encoder.layers.0.mlp`, `aten::addmm`. Only where
  // hooks ask (asks_where); empty outside of all modules, and `op` for functions of
  // torch::autograd::Function, which are no operators.
  std::string_view module = {}, op = {};
};

class SavedTensorHooks : public HoldsMemory {
 public:
  // Sees every tensor that autograd saves. Null leaves it to the next hooks; where nobody takes it,
  // autograd keeps it as it is.
  virtual std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                            const SavedTensorFacts& facts) = 0;
  // True: facts say where. Each operator of forward is then followed, which takes time.
  virtual bool asks_where() const { return false; }
};

// Places of saved-tensor hooks, in the order in which they pack; unpacking goes the other way. What
// the hooks of a place hold (SavedTensor::visit_held) is packed by those of the next, and a tensor
// that they leave is the next ones' as it is. Of several hooks at one place the first that takes a
// tensor has it.
enum class SavedTensorPlace { kCompress, kOffload };

// Pushes on this thread; pops when destroyed. The innermost hooks are asked first, and one alone
// takes a tensor: no chain.
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
