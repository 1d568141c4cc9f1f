// What a training step is given.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace peakbench {

struct BatchShape {
  std::int64_t batch_size = 1;
  std::int64_t sequence_length = 0;  // language models only
};

// One more tensor of a batch, on the model's device.
struct NamedTensor {
  std::string name;  // not "input", not "target", and there once; the trace shows it
  at::Tensor tensor;
  // (B, ...): micro-batches are given slices of it. False: all of them are given the whole.
  bool per_sample = true;
};

// On the model's device. `input`: images (B, 3, H, W) or token ids (B, T) int64; `target`: labels
// (B, T) int64, or undefined where the loss needs none. Whatever else a model takes is in `named`:
// a second text, a mask, an image beside the text.
struct Batch {
  at::Tensor input, target;
  std::vector<NamedTensor> named = {};

  // Throws std::out_of_range, with the names that are there.
  const at::Tensor& at(const std::string& name) const;
};

}  // namespace peakbench
