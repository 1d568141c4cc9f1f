#include "causal_lm.h"

#include <ATen/ATen.h>

#include "peakbench/initialise.h"
#include "peakbench/observer.h"

namespace peakbench::decoder {

DecoderLayer::DecoderLayer(const DecoderConfig& config, const at::TensorOptions& options) {
  if (config.scales) residual_scale_ = config.scales->residual;
  const auto make_norm = [&] {
    return std::make_shared<RmsNorm>(config.width, config.norm_eps, options);
  };
  self_attn = register_module("self_attn", std::make_shared<Attention>(config, options));
  mlp = register_module("mlp", std::make_shared<Mlp>(config, options));
  input_layernorm = register_module("input_layernorm", make_norm());
  post_attention_layernorm = register_module("post_attention_layernorm", make_norm());
}

at::Tensor DecoderLayer::forward(Model& model, const at::Tensor& input,
                                 const Rotation& rotation) const {
  ModuleScope scope(*this);
  at::Tensor residual = input;
  at::Tensor x = input_layernorm->forward(input);
  x = model.run_part("attention",
                     [attention = self_attn.get(), rotation](const std::vector<at::Tensor>& in) {
                       return attention->forward(in[0], rotation.cosine, rotation.sine);
                     },
                     {x});
  x = add(residual, x);

  residual = x;
  x = post_attention_layernorm->forward(x);
  x = model.run_part(
      "mlp",
      [inner = mlp.get()](const std::vector<at::Tensor>& in) { return inner->forward(in[0]); },
      {x});
  return add(residual, x);
}

at::Tensor DecoderLayer::add(const at::Tensor& residual, const at::Tensor& x) const {
  return residual + (residual_scale_ ? times(x, *residual_scale_) : x);
}

namespace {

// nn.ModuleList: no forward of its own.
class Layers : public torch::nn::Module {};

}  // namespace

DecoderModel::DecoderModel(const DecoderConfig& config, const at::TensorOptions& options) {
  embed_tokens = register_module(
      "embed_tokens", std::make_shared<nn::Embedding>(config.vocabulary, config.width, options));
  fill_normal(embed_tokens->weight, kInitialDeviation);
  auto list = register_module("layers", std::make_shared<Layers>());
  for (std::int64_t i = 0; i < config.layers; ++i) {
    layers.push_back(
        list->register_module(std::to_string(i), std::make_shared<DecoderLayer>(config, options)));
  }
  norm = register_module("norm", std::make_shared<RmsNorm>(config.width, config.norm_eps, options));
  rotary_emb = register_module(
      "rotary_emb",
      std::make_shared<RotaryEmbedding>(config.head_width(), config.rope, options.device()));
}

CausalLm::CausalLm(const DecoderConfig& c, const at::TensorOptions& options) : config(c) {
  model = register_module("model", std::make_shared<DecoderModel>(config, options));
  if (config.tied_embeddings) {
    tied_head_ =
        register_module("lm_head", std::make_shared<language_model::TiedHead>(model->embed_tokens));
  } else {
    lm_head =
        register_module("lm_head", make_linear(config.width, config.vocabulary, false, options));
  }
}

at::Tensor CausalLm::logits(const at::Tensor& hidden_states) const {
  const at::Tensor logits =
      lm_head ? lm_head->forward(hidden_states) : tied_head_->forward(hidden_states);
  return config.scales ? divided(logits, config.scales->logits) : logits;
}

}  // namespace peakbench::decoder
