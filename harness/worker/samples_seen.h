// How much of a batch a loss depends on, told by the graph that autograd keeps: no value is read.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <cstdint>

namespace peakbench::worker {

// Made before a loss head is given the hidden states, and asked after it.
class SamplesSeen {
 public:
  explicit SamplesSeen(const at::Tensor& hidden_states);  // (B, ...)
  // At most how many of the B samples the loss depends on: what it slices, selects or indexes of
  // the first dimension. 0: it does not depend on the hidden states. B where the graph does not
  // tell, or nothing below the hidden states is trained.
  std::int64_t in(const at::Tensor& loss) const;

 private:
  torch::autograd::Edge hidden_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace peakbench::worker
