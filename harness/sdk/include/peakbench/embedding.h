// What a strategy puts between a model's input and its first block: prompt tuning.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "peakbench/batch.h"
#include "peakbench/memory.h"

namespace peakbench {

using EmbedFunction = std::function<at::Tensor(const Batch& batch)>;

// Around Model::embed. It may change the length of the sequence, and then the labels with it.
class EmbeddingWrapper : public HoldsMemory {
 public:
  // (B, T, C), as `embed` returns them, -> (B, T', C), which the model runs on from.
  virtual at::Tensor run(const EmbedFunction& embed, const Batch& batch) = 0;
  // The labels of the sequences that `run` makes: (B, T) int64 -> (B, T'). Called before `run`,
  // with each micro-batch; never where the batch has none. What a new position is held against is
  // the wrapper's to say: OutputHead::ignore_index for nothing.
  virtual at::Tensor target(const at::Tensor& target) { return target; }
};

}  // namespace peakbench
