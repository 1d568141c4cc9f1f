// Source: transformers 5.23.0, GPT2Block.
#pragma once

#include "attention.h"
#include "mlp.h"
#include "peakbench/model.h"

namespace peakbench::gpt2 {

class Block : public torch::nn::Module {
 public:
  Block(const Gpt2Config& config, const at::TensorOptions& options);
  // input: (B, T, C) -> (B, T, C). Attention and MLP run as the model's parts.
  at::Tensor forward(Model& model, const at::Tensor& input) const;

  std::shared_ptr<nn::LayerNorm> ln_1;
  std::shared_ptr<Attention> attn;
  std::shared_ptr<nn::LayerNorm> ln_2;
  std::shared_ptr<Mlp> mlp;
};

}  // namespace peakbench::gpt2
