// A recipe's saved-tensor hooks as one: place after place packs, and the last unpacks first.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "peakbench/saved_tensor_hooks.h"

namespace peakbench::worker {

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
