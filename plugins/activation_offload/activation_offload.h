#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "peakbench/saved_tensor_hooks.h"

namespace peakbench::activation_offload {

// What autograd saves for backward, kept in the memory of the host: copied there when it is saved,
// and back when backward reads it.

// Which saved tensors go to the host: activations of some size. What lies in the storage of a
// parameter or buffer stays, since the device would hold it all the same.
struct Choice {
  bool pin_memory = true;  // page-locked, so that a card copies by itself
  std::int64_t min_bytes = 1024;

  bool takes(const at::Tensor& tensor, bool is_weight) const;
};

// Copies on the stream that computes. A copy has the strides of its tensor, so that backward
// multiplies and adds in the same order.
class Copies : public SavedTensorHooks {
 public:
  explicit Copies(const Choice& choice) : choice_(choice) {}
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override;

 private:
  Choice choice_;
};

// torch.autograd.graph.save_on_cpu: every saved tensor, weights too, and contiguous copies. Source:
// torch/autograd/graph.py
class SaveOnCpu : public SavedTensorHooks {
 public:
  explicit SaveOnCpu(bool pin_memory) : pin_memory_(pin_memory) {}
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override;

 private:
  bool pin_memory_;
};

}  // namespace peakbench::activation_offload
