// Multi-head self-attention with packed projections, as torch.nn.MultiheadAttention runs it for
// torchvision (batch_first, need_weights off). Source: torch/nn/functional.py,
// multi_head_attention_forward.
#pragma once

#include "peakbench/nn.h"

namespace peakbench::vit {

// in_proj_weight: (3 C, C), in_proj_bias: (3 C), out_proj: Linear(C, C).
class SelfAttention : public torch::nn::Module {
 public:
  SelfAttention(std::int64_t width, std::int64_t heads, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& input) const;  // (B, T, C) -> (B, T, C)

  at::Tensor in_proj_weight, in_proj_bias;
  std::shared_ptr<nn::Linear> out_proj;

 private:
  std::int64_t width_, heads_;
};

}  // namespace peakbench::vit
