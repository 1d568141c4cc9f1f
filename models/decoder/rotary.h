// Rotary position embeddings, with Llama 3.1's scaling of frequencies. Source: transformers 5.23.0,
// LlamaRotaryEmbedding and modeling_rope_utils.py (_compute_llama3_parameters).
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <utility>

#include "config.h"

namespace peakbench::decoder {

// inv_freq, original_inv_freq: (D / 2) float32, buffers.
class RotaryEmbedding : public torch::nn::Module {
 public:
  RotaryEmbedding(std::int64_t head_width, const RopeConfig& rope, const at::Device& device);

  // positions: (1, T) int64 -> cosine and sine, (1, T, D) in `dtype`.
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& positions,
                                            at::ScalarType dtype) const;

  at::Tensor inv_freq, original_inv_freq;
};

// x: (B, H, T, D); cosine, sine: (1, 1, T, D). apply_rotary_pos_emb for one of query and key.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine);

}  // namespace peakbench::decoder
