// Embedding wrappers change what enters a model's first block. Prompt tuning uses one.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "peakbench/batch.h"
#include "peakbench/memory.h"

namespace peakbench {

using EmbedFunction = std::function<at::Tensor(const Batch& batch)>;

// Surrounds Model::embed. A wrapper may change the length of the sequence; it then changes the
// labels too, in `target`.
class EmbeddingWrapper : public HoldsMemory {
 public:
  // Returns the embeddings (B, T', C) from which the model continues. `embed` returns the
  // embeddings (B, T, C) that the wrapper surrounds.
  virtual at::Tensor run(const EmbedFunction& embed, const Batch& batch) = 0;
  // Returns the labels (B, T') of the sequences that `run` makes, from the labels (B, T) int64.
  // - The worker calls it before `run`, with each micro-batch. Of several wrappers, the innermost
  //   is called first.
  // - It also calls it with the whole batch if micro-batches are weighted by their tokens.
  // - It does not call it for a batch without labels.
  // - The wrapper chooses the label of each new position. OutputHead::ignore_index means no label.
  virtual at::Tensor target(const at::Tensor& target) { return target; }
};

}  // namespace peakbench
