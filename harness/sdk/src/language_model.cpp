#include "peakbench/language_model.h"

#include <ATen/ATen.h>

#include "peakbench/observer.h"

namespace peakbench::language_model {

at::Tensor make_positions(std::int64_t length, const at::Device& device) {
  const at::Tensor positions = at::arange(length, at::TensorOptions(at::kLong).device(device)) + 0;
  return positions.unsqueeze(0);
}

void look_for_packed_sequences(at::Tensor positions, std::int64_t batch) {
  if (batch != 1) positions = positions.expand({batch, -1});
  const at::Tensor before_first = positions.slice(1, 0, 1) - 1;
  const at::Tensor steps = at::diff(positions, 1, -1, before_first);
  const at::Tensor sequence = (steps != 1).cumsum(-1);
  (sequence.select(1, -1) == 0).all();
}

TiedHead::TiedHead(std::shared_ptr<nn::Embedding> embedding) : embedding_(std::move(embedding)) {}

at::Tensor TiedHead::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return at::linear(x, embedding_->weight);
}

at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& labels) {
  constexpr std::int64_t kIgnored = -100;
  const at::Tensor scores = logits.to(at::kFloat).view({-1, logits.size(-1)});  // (B T, V)
  const at::Tensor padded = at::pad(labels, {0, 1}, "constant", kIgnored);      // (B, T + 1)
  const at::Tensor targets = padded.slice(-1, 1).contiguous().view(-1);         // (B T)
  return at::cross_entropy_loss(scores, targets, /*weight=*/{}, at::Reduction::Mean, kIgnored,
                                /*label_smoothing=*/0.0);
}

}  // namespace peakbench::language_model
