// The cross entropy of a linear layer's outputs without ever holding them: a few tokens at a time,
// their logits are made, turned into the loss and into their own gradient, and multiplied into the
// gradients of hidden states and weight, all in forward.
//
// Equations and order of Liger's fused linear cross entropy (https://arxiv.org/abs/2410.10989,
// section 3.2), whose kernels work in place on the logits; here ATen's operators need two more
// copies of a chunk in the loss's dtype. Source: Liger-Kernel,
// src/liger_kernel/ops/fused_linear_cross_entropy.py
#pragma once

#include <ATen/core/Tensor.h>

#include "peakbench/model.h"

namespace peakbench::linear_cross_entropy {

// How many tokens at a time take about as much for their logits as all hidden states do, rounded up
// to a power of two.
std::int64_t tokens_of_a_chunk(std::int64_t tokens, std::int64_t width, std::int64_t vocabulary);

// The mean over the targets that are not ignored, a scalar in the head's loss dtype. hidden_states:
// (..., C); targets: (...) int64. `chunk_tokens` 0: as above. Between forward and backward it holds
// the gradients of hidden states and of weight and bias, as far as each needs one. Under autocast
// it multiplies in autocast's dtype.
at::Tensor fused_loss(const OutputHead& head, const at::Tensor& hidden_states,
                      const at::Tensor& targets, std::int64_t chunk_tokens);

}  // namespace peakbench::linear_cross_entropy
