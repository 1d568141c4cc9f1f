#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

#include "peakbench/batch.h"
#include "peakbench/model.h"
#include "worker/plugin_call.h"

namespace peakbench::worker {

// Splits a batch into micro-batches whose gradients add up to the batch's.

struct MicroBatch {
  Batch batch;
  std::int64_t samples = 0;
  // What its loss counts, where that goes by tokens: a scalar on the device. Undefined: by samples.
  at::Tensor share;
};

// Samples a part: sizes differ by one at most, the larger ones first, as torch.tensor_split has
// them. Throws Unsupported where there are fewer samples than parts.
std::vector<std::int64_t> micro_batch_sizes(std::int64_t samples, std::int64_t parts);

// Views of `batch`, split along its first dimension (B, ...) -> (b, ...). Every part contains the
// data that are not split by samples.
std::vector<MicroBatch> split(const Batch& batch, std::int64_t parts);

// For a loss that is a mean over the labels that count: each part's share of these. The numbers
// stay on the device. A part without any such label has a loss that is not a number, as its mean
// is.
void share_by_tokens(std::vector<MicroBatch>& parts, const Batch& batch, const OutputHead& head);

// Contribution of one part's loss to the batch's. If losses are summed: the loss itself. If they
// are averaged: weighted by its share of the samples, or of the tokens.
at::Tensor weighted(const at::Tensor& loss, const MicroBatch& part,
                    const std::vector<MicroBatch>& parts, LossReduction reduction);

// What a loss must be: a scalar, and of parameters that are registered.

// Throws std::logic_error where backward could not begin at it.
at::Tensor scalar(at::Tensor loss);

// Searches the graphs of two steps for a tensor that gets a gradient and is no parameter of the
// module tree, so that nothing updates it. Tensors that a step makes for itself, as checkpointing
// does, are not in the next step's graph.
class RegisteredParameters {
 public:
  // Throws PluginError, in the second step.
  void check(const at::Tensor& loss, const torch::nn::Module& module, const Batch& batch,
             const Owner& owner, std::int64_t step);

 private:
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  std::vector<WeakTensor> of_first_step_;
};

// How much of a batch a loss depends on, by autograd's graph: no value is read.

// Made before a loss head is given the hidden states, and asked after it.
class SamplesSeen {
 public:
  explicit SamplesSeen(const at::Tensor& hidden_states);  // (B, ...)
  // Maximum number of the B samples that the loss depends on, from its slices, selections and
  // indices of the first dimension. 0: it does not depend on the hidden states. B if the graph does
  // not show it, or if nothing below the hidden states is trained.
  std::int64_t in(const at::Tensor& loss) const;

 private:
  torch::autograd::Edge hidden_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace peakbench::worker
