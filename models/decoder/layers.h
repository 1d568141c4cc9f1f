#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "peakbench/nn.h"
#include "peakbench/options.h"

namespace peakbench::decoder {

// The sizes of a decoder, by id and options. Official values: config.json of each model on Hugging
// Face (the manifest has the addresses).

// Rotary embeddings. scaling_factor 0: none ("default"); otherwise Llama 3.1's ("llama3").
struct RopeConfig {
  double theta;
  double scaling_factor;
  double low_frequency_factor = 1, high_frequency_factor = 4;
  double original_positions = 8192;
};

// Granite's factors: of the embeddings, of attention's scores in place of 1 / sqrt(D), and of what
// each block adds; the logits are divided by theirs.
struct GraniteScales {
  double embedding, attention, residual, logits;
};

struct DecoderConfig {
  std::int64_t layers, width, mlp, heads, kv_heads, vocabulary;
  bool attention_bias;  // of q_proj, k_proj and v_proj
  bool tied_embeddings;
  double norm_eps;
  RopeConfig rope;
  std::int64_t window;                  // positions that attention looks back; 0: all
  std::optional<GraniteScales> scales;  // Granite alone has them

  std::int64_t head_width() const { return width / heads; }
  bool grouped() const { return heads > kv_heads; }
};

// Throws OptionError for sizes that do not fit each other.
DecoderConfig config_from(const std::string& id, const Options& options);

// Rotary position embeddings, with Llama 3.1's scaling of frequencies. Source: transformers 5.23.0,
// LlamaRotaryEmbedding and modeling_rope_utils.py (_compute_llama3_parameters).

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

// Small layers of a Hugging Face decoder. Source: transformers 5.23.0,
// models/llama/modeling_llama.py, models/qwen2/modeling_qwen2.py,
// models/mistral/modeling_mistral.py and models/granite/modeling_granite.py.

// LlamaRMSNorm and its like: computed in float32 whatever the dtype. weight: (C).
class RmsNorm : public torch::nn::Module {
 public:
  RmsNorm(std::int64_t features, double eps, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& input) const;  // (B, T, C) -> (B, T, C)
  at::Tensor weight;

 private:
  double eps_;
};

// LlamaMLP and its like: down(silu(gate(x)) * up(x)).
class Mlp : public torch::nn::Module {
 public:
  Mlp(const DecoderConfig& config, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;  // (B, T, C) -> (B, T, C)
  std::shared_ptr<nn::Linear> gate_proj, up_proj, down_proj;
};

// A linear layer with its weight drawn from normal(0, 0.02), as transformers initialises it, and
// its bias zero.
std::shared_ptr<nn::Linear> make_linear(std::int64_t in, std::int64_t out, bool bias,
                                        const at::TensorOptions& options);

inline constexpr double kInitialDeviation = 0.02;

// tensor * number and tensor / number as Python runs them: the number becomes a tensor, which
// autograd keeps.
at::Tensor times(const at::Tensor& tensor, double number);
at::Tensor divided(const at::Tensor& tensor, double number);

// Causal self-attention with rotary embeddings and grouped keys and values. Source: transformers
// 5.23.0, LlamaAttention, Qwen2Attention, MistralAttention and GraniteAttention,
// integrations/sdpa_attention.py.

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
