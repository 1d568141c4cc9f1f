// A batch holds the tensors that a model receives in one training step.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace peakbench {

struct BatchShape {
  std::int64_t batch_size = 1;
  std::int64_t sequence_length = 0;  // language models only
};

// An additional tensor of a batch, on the model's device. It must be defined.
struct NamedTensor {
  // The name is unique in the batch, not empty, and neither "input" nor "target". The trace shows
  // it.
  std::string name;
  at::Tensor tensor;
  // True: the tensor is (B, ...), and each micro-batch receives its slice. False: every micro-batch
  // receives the whole tensor.
  bool per_sample = true;
};

// All tensors of a batch are on the model's device.
// - `input`: images (B, 3, H, W), or token ids (B, T) int64.
// - `target`: labels (B, T) int64. It is undefined if the loss needs no labels.
// - `named`: everything else that a model takes, such as a second text, a mask, or an image that
//   accompanies the text.
struct Batch {
  at::Tensor input, target;
  std::vector<NamedTensor> named = {};

  // Returns the tensor of `named` with this name. Throws std::out_of_range if no tensor has it; the
  // message lists the names that exist.
  const at::Tensor& at(const std::string& name) const;
};

}  // namespace peakbench
