// Causal self-attention whose queries, keys and values come from one layer. Source: transformers
// 5.23.0, GPT2Attention, integrations/sdpa_attention.py.
#pragma once

#include "config.h"
#include "peakbench/nn.h"

namespace peakbench::gpt2 {

// c_attn: (C, 3 C), c_proj: (C, C), both transposed as in Conv1D.
class Attention : public torch::nn::Module {
 public:
  Attention(const Gpt2Config& config, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& input) const;  // (B, T, C) -> (B, T, C)

  std::shared_ptr<nn::Conv1d> c_attn, c_proj;

 private:
  std::int64_t width_, head_width_;
  double dropout_;
};

}  // namespace peakbench::gpt2
