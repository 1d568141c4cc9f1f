// Causal self-attention with rotary embeddings and grouped keys and values. Source: transformers
// 5.23.0, LlamaAttention, Qwen2Attention, MistralAttention and GraniteAttention,
// integrations/sdpa_attention.py.
#pragma once

#include "config.h"
#include "peakbench/nn.h"

namespace peakbench::decoder {

// q_proj: (H D, C), k_proj and v_proj: (K D, C) with K heads of keys and values, o_proj: (C, H D).
class Attention : public torch::nn::Module {
 public:
  Attention(const DecoderConfig& config, const at::TensorOptions& options);

  // input: (B, T, C); cosine, sine: (1, T, D) -> (B, T, C)
  at::Tensor forward(const at::Tensor& input, const at::Tensor& cosine,
                     const at::Tensor& sine) const;

  std::shared_ptr<nn::Linear> q_proj, k_proj, v_proj, o_proj;

 private:
  std::int64_t head_width_;
  bool grouped_;
  double scale_;
};

}  // namespace peakbench::decoder
