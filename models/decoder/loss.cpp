#include "loss.h"

#include <ATen/ATen.h>

namespace peakbench::decoder {

at::Tensor causal_lm_loss(const at::Tensor& logits, const at::Tensor& labels) {
  constexpr std::int64_t kIgnored = -100;
  const at::Tensor scores = logits.to(at::kFloat).view({-1, logits.size(-1)});  // (B T, V)
  const at::Tensor padded = at::pad(labels, {0, 1}, "constant", kIgnored);      // (B, T + 1)
  const at::Tensor targets = padded.slice(-1, 1).contiguous().view(-1);         // (B T)
  return at::cross_entropy_loss(scores, targets, /*weight=*/{}, at::Reduction::Mean, kIgnored,
                                /*label_smoothing=*/0.0);
}

}  // namespace peakbench::decoder
