#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <utility>
#include <vector>

#include "peakbench/saved_tensor_hooks.h"

namespace peakbench::worker {

// The autograd engine of this process: LibTorch's own, which asks the SDK's stack for saved-tensor
// hooks.

// Before any autograd use; there is one engine a process. LibTorch keeps Python's hooks in a Python
// engine; without Python this is the place it leaves for them (torch/csrc/autograd/engine.h,
// get_default_saved_variable_hooks).
void install_engine();

// The model whose parameters and buffers saved-tensor hooks recognize. Call it before each forward
// that may have other ones than the last.
void set_weights(const torch::nn::Module& module);
// Is its storage a parameter's or a buffer's of that model?
bool is_weight(const at::Tensor& tensor);

// A recipe's saved-tensor hooks as one: place after place packs, and the last unpacks first.

class SavedTensorChain final : public SavedTensorHooks {
 public:
  using Placed = std::pair<SavedTensorPlace, std::shared_ptr<SavedTensorHooks>>;
  explicit SavedTensorChain(const std::vector<Placed>& hooks);

  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override;
  bool asks_where() const override;
  bool empty() const { return places_.empty(); }

 private:
  std::shared_ptr<SavedTensor> pack_from(std::size_t place, const at::Tensor& tensor,
                                         const SavedTensorFacts& facts);
  std::shared_ptr<SavedTensor> pack_held(std::size_t place, std::shared_ptr<SavedTensor> saved,
                                         const SavedTensorFacts& facts);

  std::vector<std::vector<std::shared_ptr<SavedTensorHooks>>> places_;  // none of them empty
};

}  // namespace peakbench::worker
