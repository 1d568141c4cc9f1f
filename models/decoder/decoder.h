// Hugging Face's LlamaForCausalLM, Qwen2ForCausalLM, MistralForCausalLM and GraniteForCausalLM as
// one module tree: same names, same order of parameters. Source: transformers 5.23.0.
#pragma once

#include <optional>
#include <vector>

#include "layers.h"
#include "peakbench/language_model.h"
#include "peakbench/model.h"

namespace peakbench::decoder {

// What rotates queries and keys. transformers hands it to every layer and its attention together
// with the positions: one that is checkpointed keeps all three.
struct Rotation {
  at::Tensor cosine, sine;  // (1, T, D)
  at::Tensor positions;     // (1, T) int64
};

class DecoderLayer : public torch::nn::Module {
 public:
  DecoderLayer(const DecoderConfig& config, const at::TensorOptions& options);
  // input: (B, T, C) -> (B, T, C). Attention and MLP run as the model's parts.
  at::Tensor forward(Model& model, const at::Tensor& input, const Rotation& rotation) const;

  std::shared_ptr<Attention> self_attn;
  std::shared_ptr<Mlp> mlp;
  std::shared_ptr<RmsNorm> input_layernorm, post_attention_layernorm;

 private:
  // residual + x, the latter scaled where the model does.
  at::Tensor add(const at::Tensor& residual, const at::Tensor& x) const;
  std::optional<double> residual_scale_;
};

// LlamaModel and its like: embedding, layers "layers.i", final norm. Who runs the layers decides
// how (Model::run_block).
class DecoderModel : public torch::nn::Module {
 public:
  DecoderModel(const DecoderConfig& config, const at::TensorOptions& options);

  std::shared_ptr<nn::Embedding> embed_tokens;
  std::vector<std::shared_ptr<DecoderLayer>> layers;
  std::shared_ptr<RmsNorm> norm;
  std::shared_ptr<RotaryEmbedding> rotary_emb;
};

class CausalLm : public torch::nn::Module {
 public:
  CausalLm(const DecoderConfig& config, const at::TensorOptions& options);
  at::Tensor logits(const at::Tensor& hidden_states) const;  // (B, T, C) -> (B, T, V)

  DecoderConfig config;
  std::shared_ptr<DecoderModel> model;
  std::shared_ptr<nn::Linear> lm_head;  // null where the head is the embedding's weight

 private:
  std::shared_ptr<language_model::TiedHead> tied_head_;
};

}  // namespace peakbench::decoder
