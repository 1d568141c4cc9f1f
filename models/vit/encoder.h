#pragma once

#include "peakbench/model.h"
#include "peakbench/nn.h"

namespace peakbench::vit {

// Multi-head self-attention with packed projections, as torch.nn.MultiheadAttention runs it for
// torchvision (batch_first, need_weights off). Source: torch/nn/functional.py,
// multi_head_attention_forward.

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

// torchvision's ViT encoder: blocks of attention and MLP with residuals, then a LayerNorm. Names
// and order of parameters are torchvision's. Source: torchvision/models/vision_transformer.py.

struct EncoderShape {
  std::int64_t layers, width, heads, mlp, tokens;
};

// torchvision's MLPBlock: Sequential of Linear "0", GELU, Linear "3".
class MlpBlock : public torch::nn::Module {
 public:
  MlpBlock(std::int64_t width, std::int64_t inner, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;
  std::shared_ptr<nn::Linear> first, second;
};

class EncoderBlock : public torch::nn::Module {
 public:
  EncoderBlock(const EncoderShape& shape, const at::TensorOptions& options);
  // input: (B, T, C) -> (B, T, C). Attention and MLP run as the model's parts.
  at::Tensor forward(Model& model, const at::Tensor& input) const;

  std::shared_ptr<nn::LayerNorm> ln_1;
  std::shared_ptr<SelfAttention> self_attention;
  std::shared_ptr<nn::LayerNorm> ln_2;
  std::shared_ptr<MlpBlock> mlp;
};

// Holds the blocks under the name "layers.encoder_layer_i".
class Encoder : public torch::nn::Module {
 public:
  Encoder(const EncoderShape& shape, const at::TensorOptions& options);

  at::Tensor pos_embedding;  // (1, T, C)
  std::vector<std::shared_ptr<EncoderBlock>> blocks;
  std::shared_ptr<nn::LayerNorm> ln;
};

}  // namespace peakbench::vit
