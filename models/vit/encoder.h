// torchvision's ViT encoder: blocks of attention and MLP with residuals, then a LayerNorm. Names
// and order of parameters are torchvision's. Source: torchvision/models/vision_transformer.py.
#pragma once

#include "attention.h"
#include "peakbench/model.h"

namespace peakbench::vit {

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
