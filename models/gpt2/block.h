// Source: transformers 5.23.0, GPT2Block.
#pragma once

#include "attention.h"
#include "mlp.h"

namespace peakbench::gpt2 {

class Block : public torch::nn::Module {
 public:
  Block(const Gpt2Config& config, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& input) const;  // (B, T, C) -> (B, T, C)

  std::shared_ptr<nn::LayerNorm> ln_1;
  std::shared_ptr<Attention> attn;
  std::shared_ptr<nn::LayerNorm> ln_2;
  std::shared_ptr<Mlp> mlp;
};

}  // namespace peakbench::gpt2
