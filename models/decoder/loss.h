// Next-token loss. Source: transformers 5.23.0, loss/loss_utils.py (ForCausalLMLoss).
#pragma once

#include <ATen/core/Tensor.h>

namespace peakbench::decoder {

// logits: (B, T, V); labels: (B, T) int64. Labels are shifted here; the last position of each
// sequence is ignored. The mean over the others, a float32 scalar.
at::Tensor causal_lm_loss(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace peakbench::decoder
