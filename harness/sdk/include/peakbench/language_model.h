// Operations around the layers that Hugging Face's causal language models have in common. Source:
// transformers 5.23.0.
#pragma once

#include <memory>

#include "peakbench/nn.h"

namespace peakbench::language_model {

// Returns the positions 0, 1, ..., T - 1 as (1, T) int64. `length` is T.
at::Tensor make_positions(std::int64_t length, const at::Device& device);

// Runs the operators with which transformers detects packed sequences, that is, several sequences
// in one row. positions: (1, T). Source: masking_utils.py, find_packed_sequence_indices.
//
// transformers compares neighbouring positions and reads one bool back from the device. Here the
// rows are known to hold one sequence each. The operators run only to make the same allocations,
// and no value is read back.
void look_for_packed_sequences(at::Tensor positions, std::int64_t batch);

// An output head that uses the embedding's weight. The head registers no parameter of its own, so
// that the shared weight is listed once.
class TiedHead : public torch::nn::Module {
 public:
  explicit TiedHead(std::shared_ptr<nn::Embedding> embedding);
  at::Tensor forward(const at::Tensor& x) const;  // (B, T, C) -> (B, T, V)

 private:
  std::shared_ptr<nn::Embedding> embedding_;
};

// Returns the next-token loss, a float32 scalar. logits: (B, T, V); labels: (B, T) int64. The
// function shifts the labels and ignores the last position of each sequence. The loss is the mean
// over the other positions whose shifted label is not -100. Source: loss/loss_utils.py,
// ForCausalLMLoss.
at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace peakbench::language_model
