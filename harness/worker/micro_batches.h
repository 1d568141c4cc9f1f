// How a batch is split into micro-batches, so that their gradients add up to the whole batch's.
#pragma once

#include <cstdint>
#include <vector>

#include "peakbench/model.h"

namespace peakbench::worker {

struct MicroBatch {
  Batch batch;
  std::int64_t samples = 0;
  // What its loss counts, where that goes by tokens: a scalar on the device. Undefined: by samples.
  at::Tensor share;
};

// Samples a part: sizes differ by one at most, the larger ones first, as torch.tensor_split has
// them. Throws Unsupported where there are fewer samples than parts.
std::vector<std::int64_t> micro_batch_sizes(std::int64_t samples, std::int64_t parts);

// Views of `batch`, split along its first dimension (B, ...) -> (b, ...); what is not of its
// samples goes into every part whole.
std::vector<MicroBatch> split(const Batch& batch, std::int64_t parts);

// For a loss that is a mean over the labels that count: each part's share of these. The numbers
// stay on the device. A part without any such label has a loss that is not a number, as its mean
// is.
void share_by_tokens(std::vector<MicroBatch>& parts, const Batch& batch, const OutputHead& head);

// What the loss of one of the parts adds to the batch's: itself where losses are summed; where they
// are averaged, weighted by its share of the samples, or of the tokens.
at::Tensor weighted(const at::Tensor& loss, const MicroBatch& part,
                    const std::vector<MicroBatch>& parts, LossReduction reduction);

}  // namespace peakbench::worker
