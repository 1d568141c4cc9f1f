// What Hugging Face's causal language models do alike, around their layers. Source: transformers
// 5.23.0.
#pragma once

#include <memory>

#include "peakbench/nn.h"

namespace peakbench::language_model {

// 0, 1, ..., T - 1: (1, T) int64
at::Tensor make_positions(std::int64_t length, const at::Device& device);

// transformers looks whether several sequences share a row, by positions that do not follow each
// other, and reads one bool back from the device. Here the answer is known to be no: its operators
// run, for the same allocations, and nothing is read. positions: (1, T). masking_utils.py,
// find_packed_sequence_indices
void look_for_packed_sequences(at::Tensor positions, std::int64_t batch);

// An output head without a parameter of its own, so that the embedding's weight is listed once.
class TiedHead : public torch::nn::Module {
 public:
  explicit TiedHead(std::shared_ptr<nn::Embedding> embedding);
  at::Tensor forward(const at::Tensor& x) const;  // (B, T, C) -> (B, T, V)

 private:
  std::shared_ptr<nn::Embedding> embedding_;
};

// Next-token loss. logits: (B, T, V); labels: (B, T) int64. Labels are shifted here; the last
// position of each sequence is ignored. The mean over the others, a float32 scalar.
// loss/loss_utils.py, ForCausalLMLoss
at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace peakbench::language_model
