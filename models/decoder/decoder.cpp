#include "decoder.h"

#include <ATen/ATen.h>

#include "peakbench/errors.h"
#include "peakbench/initialise.h"
#include "peakbench/language_model.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"

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

// The family's plugin: Qwen2.5, Llama, Mistral 7B and PowerLM as language models in training.

namespace {

class Decoder : public Model {
 public:
  explicit Decoder(const ModelContext& context)
      : device_(context.tensor_options.device()),
        lm_(std::make_shared<CausalLm>(config_from(context.id, context.options),
                                       context.tensor_options)) {
    if (const std::string& weights = context.options.string("weights"); !weights.empty()) {
      load_safetensors(*lm_, weights);
    }
  }

  torch::nn::Module& module() override { return *lm_; }

  Batch make_batch(const BatchShape& shape) override {
    check_window(shape.sequence_length);
    const at::Tensor tokens =
        at::randint(lm_->config.vocabulary, {shape.batch_size, shape.sequence_length},
                    at::TensorOptions(at::kLong).device(device_));
    return {tokens, tokens.clone()};
  }

  at::Tensor embed(const Batch& batch) override {
    return lm_->model->embed_tokens->forward(batch.input);
  }

  at::Tensor hidden_states(const Batch& batch) override {
    const DecoderModel& model = *lm_->model;
    const ModuleScope scope(*lm_), model_scope(model);
    at::Tensor embeddings = run_embed(batch);  // (B, T, C)
    if (const auto& scales = lm_->config.scales) embeddings = times(embeddings, scales->embedding);
    const at::Tensor positions = language_model::make_positions(embeddings.size(1), device_);
    language_model::look_for_packed_sequences(positions, embeddings.size(0));
    const auto [cosine, sine] = model.rotary_emb->forward(positions, embeddings.scalar_type());
    const Rotation rotation{cosine, sine, positions};

    at::Tensor x = embeddings;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const DecoderLayer* layer = model.layers[i].get();
      const TensorFunction block = [this, layer, rotation](const std::vector<at::Tensor>& in) {
        return layer->forward(*this, in[0], rotation);
      };
      x = run_block(i, block, {x});
    }
    return model.norm->forward(x);
  }

  at::Tensor loss(at::Tensor hidden_states, const Batch& batch) override {
    const ModuleScope scope(*lm_);
    const at::Tensor logits = lm_->logits(hidden_states);  // (B, T, V)
    return language_model::next_token_loss(logits, batch.target);
  }

  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdamW; }
  std::vector<std::string> block_paths() const override {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < lm_->model->layers.size(); ++i)
      paths.push_back("model.layers." + std::to_string(i));
    return paths;
  }

  std::optional<OutputHead> output_head() override {
    // Its loss is of the logits, not of the logits divided.
    if (lm_->config.scales) return std::nullopt;
    OutputHead head;
    head.layer = lm_->lm_head.get();
    head.weight = head.layer != nullptr ? head.layer->weight : lm_->model->embed_tokens->weight;
    return head;
  }

  std::vector<NamedLinear> linears() override {
    std::vector<NamedLinear> linears;
    for (std::size_t i = 0; i < lm_->model->layers.size(); ++i) {
      const std::string path = "model.layers." + std::to_string(i);
      const Attention& attention = *lm_->model->layers[i]->self_attn;
      linears.push_back({"q_proj", path + ".self_attn.q_proj", attention.q_proj.get()});
      linears.push_back({"k_proj", path + ".self_attn.k_proj", attention.k_proj.get()});
      linears.push_back({"v_proj", path + ".self_attn.v_proj", attention.v_proj.get()});
      linears.push_back({"output_proj", path + ".self_attn.o_proj", attention.o_proj.get()});
      const Mlp& mlp = *lm_->model->layers[i]->mlp;
      linears.push_back({"mlp", path + ".mlp.gate_proj", mlp.gate_proj.get()});
      linears.push_back({"mlp", path + ".mlp.up_proj", mlp.up_proj.get()});
      linears.push_back({"mlp", path + ".mlp.down_proj", mlp.down_proj.get()});
    }
    if (lm_->lm_head) linears.push_back({"output", "lm_head", lm_->lm_head.get()});
    return linears;
  }

  std::string why_no_linear(const std::string& part) const override {
    if (part == "output" && !lm_->lm_head) return "the output head is tied to the embedding";
    if (part == "qkv_proj") return "queries, keys and values have layers of their own";
    return {};
  }

 private:
  // From a whole window on, transformers builds a mask, and attention takes other kernels.
  void check_window(std::int64_t length) const {
    const std::int64_t window = lm_->config.window;
    if (window == 0 || length < window) return;
    throw Unsupported(
        "sequences of " + std::to_string(length) + " tokens: this model's attention looks back " +
        std::to_string(window) +
        " and needs a mask from there on, which is not built; give a shorter sequence");
  }

  at::Device device_;
  std::shared_ptr<CausalLm> lm_;
};

std::unique_ptr<Model> make(const ModelContext& context) {
  return std::make_unique<Decoder>(context);
}

}  // namespace
}  // namespace peakbench::decoder

PEAKBENCH_MODEL_PLUGIN(peakbench::decoder::make)
