#pragma once

#include <cstdint>

#include "peakbench/model.h"
#include "peakbench/nn.h"
#include "peakbench/options.h"

namespace peakbench::gpt2 {

// The sizes of a GPT-2, from its options. Official values: config.json of each model on Hugging
// Face (the manifest has the addresses).

struct Gpt2Config {
  std::int64_t layers, width, mlp, heads, positions, vocabulary;
  double dropout;  // of embeddings, attention's scores and what each block adds
};

// Throws OptionError for sizes that do not fit each other.
Gpt2Config config_from(const Options& options);

inline constexpr double kLayerNormEps = 1e-5;
inline constexpr double kInitialDeviation = 0.02;

// Causal self-attention whose queries, keys and values come from one layer. Source: transformers
// 5.23.0, GPT2Attention, integrations/sdpa_attention.py.

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

// Source: transformers 5.23.0, GPT2MLP and activations.py, NewGELUActivation.

// c_fc: (C, mlp), c_proj: (mlp, C), both transposed as in Conv1D.
class Mlp : public torch::nn::Module {
 public:
  Mlp(const Gpt2Config& config, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& input) const;  // (B, T, C) -> (B, T, C)

  std::shared_ptr<nn::Conv1d> c_fc, c_proj;

 private:
  double dropout_;
};

// Source: transformers 5.23.0, GPT2Block.

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
