// Qwen2.5, Llama, Mistral 7B and PowerLM as language models in training: Hugging Face's
// LlamaForCausalLM, Qwen2ForCausalLM, MistralForCausalLM and GraniteForCausalLM as one module tree,
// with the same names and the same order of parameters. Source: transformers 5.23.0,
// models/{llama,qwen2,mistral,granite}/modeling_*.py, modeling_rope_utils.py and
// integrations/sdpa_attention.py.
#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "peakbench/errors.h"
#include "peakbench/initialise.h"
#include "peakbench/language_model.h"
#include "peakbench/nn.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"

namespace peakbench::decoder {
namespace {

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

// The sizes of a decoder, by id and options. Official values: config.json of each model on Hugging
// Face (the manifest has the addresses).
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

// What an id fixes and no option changes.
struct Variant {
  bool attention_bias, tied_embeddings;
  double norm_eps;
  RopeConfig rope;
  std::int64_t window = 0;
  std::optional<GraniteScales> scales = {};
};

constexpr Variant kQwen25 = {true, true, 1e-6, {1000000.0, 0}};
constexpr Variant kQwen25Untied = {true, false, 1e-6, {1000000.0, 0}};
constexpr Variant kLlama2 = {false, false, 1e-5, {10000.0, 0}};
constexpr Variant kLlama3 = {false, false, 1e-5, {500000.0, 0}};
constexpr Variant kLlama32 = {false, true, 1e-5, {500000.0, 32}};
constexpr Variant kLlama31 = {false, false, 1e-5, {500000.0, 8}};
constexpr Variant kMistral = {false, false, 1e-5, {10000.0, 0}, 4096};
constexpr Variant kMistral3 = {false, false, 1e-5, {1000000.0, 0}};
// arXiv 2408.13359, table 4: m_emb, m_residual, m_width; attention's scores over the head's width.
constexpr Variant kPowerLm = {false,        true, 1e-5,
                              {10000.0, 0}, 0,    GraniteScales{12, 1.0 / 64, 0.22, 8}};

const std::map<std::string, Variant> kVariants = {
    {"qwen2.5-0.5b", kQwen25},     {"qwen2.5-1.5b", kQwen25},     {"qwen2.5-3b", kQwen25},
    {"qwen2.5-7b", kQwen25Untied}, {"tinyllama-1.1b", kLlama2},   {"llama-2-7b", kLlama2},
    {"llama-2-13b", kLlama2},      {"llama-3-8b", kLlama3},       {"llama-3.2-1b", kLlama32},
    {"llama-3.2-3b", kLlama32},    {"llama-3.1-8b", kLlama31},    {"llama-3.1-70b", kLlama31},
    {"llama-3.1-405b", kLlama31},  {"mistral-7b-v0.1", kMistral}, {"mistral-7b-v0.3", kMistral3},
    {"powerlm-3b", kPowerLm}};

std::string given(const char* name, std::int64_t value) {
  return std::string(name) + "=" + std::to_string(value);
}

void check(const DecoderConfig& config) {
  const std::string heads = given("heads", config.heads), width = given("width", config.width);
  if (config.width % config.heads != 0) {
    throw OptionError(width + " is not a multiple of " + heads);
  }
  if (config.head_width() % 2 != 0) {
    throw OptionError(width + " over " + heads + " gives heads of " +
                      std::to_string(config.head_width()) +
                      " features; rotary embeddings need an even number");
  }
  if (config.heads % config.kv_heads != 0) {
    throw OptionError(heads + " is not a multiple of " + given("kv_heads", config.kv_heads));
  }
  // transformers leaves grouped attention to the operator up to here and copies keys beyond.
  constexpr std::int64_t kWidestGroupedHead = 256;
  if (config.grouped() && config.head_width() > kWidestGroupedHead) {
    throw OptionError(
        width + " over " + heads + " gives heads of " + std::to_string(config.head_width()) +
        " features; with fewer kv_heads than heads, 256 is the most: give more heads");
  }
}

// Throws OptionError for sizes that do not fit each other.
DecoderConfig config_from(const std::string& id, const Options& options) {
  const auto variant = kVariants.find(id);
  if (variant == kVariants.end()) {
    throw std::logic_error("the manifest offers '" + id + "' but the plugin does not know it");
  }
  const DecoderConfig config{.layers = options.integer("layers"),
                             .width = options.integer("width"),
                             .mlp = options.integer("mlp"),
                             .heads = options.integer("heads"),
                             .kv_heads = options.integer("kv_heads"),
                             .vocabulary = options.integer("vocabulary"),
                             .attention_bias = variant->second.attention_bias,
                             .tied_embeddings = variant->second.tied_embeddings,
                             .norm_eps = variant->second.norm_eps,
                             .rope = variant->second.rope,
                             .window = variant->second.window,
                             .scales = variant->second.scales};
  check(config);
  return config;
}

// number / tensor, as Python writes it: one rounding of the reciprocal, one of the product.
at::Tensor over(double number, const at::Tensor& tensor) { return tensor.reciprocal() * number; }

// Long waves are slowed down by the factor, short ones kept, those between interpolated.
at::Tensor scale_frequencies(const at::Tensor& inv_freq, const RopeConfig& rope) {
  const double longest = rope.original_positions / rope.low_frequency_factor;
  const double shortest = rope.original_positions / rope.high_frequency_factor;
  const at::Tensor wavelength = over(2 * std::numbers::pi, inv_freq);
  const at::Tensor scaled =
      at::where(wavelength > longest, inv_freq / rope.scaling_factor, inv_freq);
  const at::Tensor smooth =
      (over(rope.original_positions, wavelength) - rope.low_frequency_factor) /
      (rope.high_frequency_factor - rope.low_frequency_factor);
  const at::Tensor smoothed = at::rsub(smooth, 1) * scaled / rope.scaling_factor + smooth * scaled;
  const at::Tensor between = (wavelength >= shortest).logical_and(wavelength <= longest);
  return at::where(between, smoothed, scaled);
}

// (D / 2) float32 on the CPU.
at::Tensor inverse_frequencies(std::int64_t head_width, const RopeConfig& rope) {
  const at::Tensor exponents = at::arange(0, head_width, 2, at::kFloat) / head_width;
  const at::Tensor inv_freq = over(1, at::pow(rope.theta, exponents));
  return rope.scaling_factor == 0 ? inv_freq : scale_frequencies(inv_freq, rope);
}

// Rotary position embeddings, with Llama 3.1's scaling of frequencies: LlamaRotaryEmbedding and
// _compute_llama3_parameters.
//
// inv_freq, original_inv_freq: (D / 2) float32, buffers.
class RotaryEmbedding : public torch::nn::Module {
 public:
  RotaryEmbedding(std::int64_t head_width, const RopeConfig& rope, const at::Device& device) {
    const at::NoGradGuard no_grad;
    const at::Tensor frequencies = inverse_frequencies(head_width, rope);
    inv_freq = register_buffer("inv_freq", frequencies.to(device));
    original_inv_freq = register_buffer("original_inv_freq", inv_freq.clone());
  }

  // positions: (1, T) int64 -> cosine and sine, (1, T, D) in `dtype`.
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& positions,
                                            at::ScalarType dtype) const {
    ModuleScope scope(*this);
    const at::NoGradGuard no_grad;
    constexpr double kAttentionScaling = 1.0;  // the reference multiplies by it, one copy each
    const at::Tensor angles = positions.unsqueeze(-1).to(at::kFloat) * inv_freq;  // (1, T, D / 2)
    const at::Tensor both = at::cat({angles, angles}, -1);                        // (1, T, D)
    const at::Tensor cosine = both.cos() * kAttentionScaling;
    const at::Tensor sine = both.sin() * kAttentionScaling;
    return {cosine.to(dtype), sine.to(dtype)};
  }

  at::Tensor inv_freq, original_inv_freq;
};

// (..., D) -> (..., D): the second half negated, then the first.
at::Tensor rotate_half(const at::Tensor& x) {
  const std::int64_t half = x.size(-1) / 2;
  // Sliced in this order: backward goes through them in the opposite one.
  const at::Tensor first = x.slice(-1, 0, half), second = x.slice(-1, half);
  return at::cat({-second, first}, -1);
}

// x: (B, H, T, D); cosine, sine: (1, 1, T, D). apply_rotary_pos_emb for one of query and key.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
  const at::Tensor direct = x * cosine;
  const at::Tensor turned = rotate_half(x) * sine;
  return direct + turned;
}

// LlamaRMSNorm and its like: computed in float32 whatever the dtype. weight: (C).
class RmsNorm : public torch::nn::Module {
 public:
  RmsNorm(std::int64_t features, double eps, const at::TensorOptions& options) : eps_(eps) {
    weight = register_parameter("weight", at::ones({features}, options));
  }
  // (B, T, C) -> (B, T, C)
  // Locals live and die as the reference's do: without gradients (or with what autograd saves
  // packed away) they alone decide the peak.
  at::Tensor forward(const at::Tensor& input) const {
    ModuleScope scope(*this);
    at::Tensor x = input.to(at::kFloat);
    const at::Tensor variance = x.pow(2).mean(-1, /*keepdim=*/true);  // (B, T, 1)
    {
      const at::Tensor inverse = at::rsqrt(variance + eps_);
      x = x * inverse;
    }
    return weight * x.to(input.scalar_type());
  }
  at::Tensor weight;

 private:
  double eps_;
};

constexpr double kInitialDeviation = 0.02;

// A linear layer with its weight drawn from normal(0, 0.02), as transformers initialises it, and
// its bias zero.
std::shared_ptr<nn::Linear> make_linear(std::int64_t in, std::int64_t out, bool bias,
                                        const at::TensorOptions& options) {
  auto linear = std::make_shared<nn::Linear>(in, out, bias, options, [](const at::Tensor& weight) {
    fill_normal(weight, kInitialDeviation);
  });
  const at::NoGradGuard no_grad;
  if (bias) linear->bias.zero_();
  return linear;
}

// tensor * number and tensor / number as Python runs them: the number becomes a tensor, which
// autograd keeps.
at::Tensor times(const at::Tensor& tensor, double number) {
  return at::mul(tensor, at::native::wrapped_scalar_tensor(number));
}

at::Tensor divided(const at::Tensor& tensor, double number) {
  return at::div(tensor, at::native::wrapped_scalar_tensor(number));
}

// LlamaMLP and its like: down(silu(gate(x)) * up(x)).
class Mlp : public torch::nn::Module {
 public:
  Mlp(const DecoderConfig& config, const at::TensorOptions& options) {
    const auto add = [&](const char* name, std::int64_t in, std::int64_t out) {
      return register_module(name, make_linear(in, out, false, options));
    };
    gate_proj = add("gate_proj", config.width, config.mlp);
    up_proj = add("up_proj", config.width, config.mlp);
    down_proj = add("down_proj", config.mlp, config.width);
  }
  // (B, T, C) -> (B, T, C)
  at::Tensor forward(const at::Tensor& x) const {
    ModuleScope scope(*this);
    at::Tensor inner;  // (B, T, mlp)
    {
      const at::Tensor activated = at::silu(gate_proj->forward(x));
      inner = activated * up_proj->forward(x);
    }
    return down_proj->forward(inner);
  }
  std::shared_ptr<nn::Linear> gate_proj, up_proj, down_proj;
};

// No mask is built: without padding and packing, transformers leaves causality and the grouping of
// heads to the operator. q: (B, H, T, D), k, v: (B, K, T, D) -> (B, T, H, D)
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool grouped,
                  double scale) {
  const bool causal = q.size(2) > 1;
  at::Tensor output = at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                       causal, scale, /*enable_gqa=*/grouped);
  return output.transpose(1, 2).contiguous();
}

double scale_of(const DecoderConfig& config) {
  return config.scales ? config.scales->attention
                       : 1.0 / std::sqrt(static_cast<double>(config.head_width()));
}

// Causal self-attention with rotary embeddings and grouped keys and values: LlamaAttention and its
// like.
//
// q_proj: (H D, C), k_proj and v_proj: (K D, C) with K heads of keys and values, o_proj: (C, H D).
class Attention : public torch::nn::Module {
 public:
  Attention(const DecoderConfig& config, const at::TensorOptions& options)
      : head_width_(config.head_width()), grouped_(config.grouped()), scale_(scale_of(config)) {
    const std::int64_t queries = config.heads * head_width_, keys = config.kv_heads * head_width_;
    const auto add = [&](const char* name, std::int64_t in, std::int64_t out, bool bias) {
      return register_module(name, make_linear(in, out, bias, options));
    };
    q_proj = add("q_proj", config.width, queries, config.attention_bias);
    k_proj = add("k_proj", config.width, keys, config.attention_bias);
    v_proj = add("v_proj", config.width, keys, config.attention_bias);
    o_proj = add("o_proj", queries, config.width, false);
  }

  // input: (B, T, C); cosine, sine: (1, T, D) -> (B, T, C)
  at::Tensor forward(const at::Tensor& input, const at::Tensor& cosine,
                     const at::Tensor& sine) const {
    ModuleScope scope(*this);
    const std::int64_t batch = input.size(0), length = input.size(1);
    const auto by_head = [&](const at::Tensor& t) {  // (B, T, n D) -> (B, n, T, D)
      return t.view({batch, length, -1, head_width_}).transpose(1, 2);
    };
    at::Tensor q = by_head(q_proj->forward(input));
    at::Tensor k = by_head(k_proj->forward(input));
    const at::Tensor v = by_head(v_proj->forward(input));
    {
      // Both exist before either of the unrotated is released.
      const at::Tensor wide_cosine = cosine.unsqueeze(1), wide_sine = sine.unsqueeze(1);
      at::Tensor rotated_q = rotate(q, wide_cosine, wide_sine);
      at::Tensor rotated_k = rotate(k, wide_cosine, wide_sine);
      q = std::move(rotated_q);
      k = std::move(rotated_k);
    }
    at::Tensor output = attend(q, k, v, grouped_, scale_);
    output = output.reshape({batch, length, -1}).contiguous();
    return o_proj->forward(output);
  }

  std::shared_ptr<nn::Linear> q_proj, k_proj, v_proj, o_proj;

 private:
  std::int64_t head_width_;
  bool grouped_;
  double scale_;
};

// What rotates queries and keys. transformers hands it to every layer and its attention together
// with the positions: one that is checkpointed keeps all three.
struct Rotation {
  at::Tensor cosine, sine;  // (1, T, D)
  at::Tensor positions;     // (1, T) int64
};

class DecoderLayer : public torch::nn::Module {
 public:
  DecoderLayer(const DecoderConfig& config, const at::TensorOptions& options) {
    if (config.scales) residual_scale_ = config.scales->residual;
    const auto make_norm = [&] {
      return std::make_shared<RmsNorm>(config.width, config.norm_eps, options);
    };
    self_attn = register_module("self_attn", std::make_shared<Attention>(config, options));
    mlp = register_module("mlp", std::make_shared<Mlp>(config, options));
    input_layernorm = register_module("input_layernorm", make_norm());
    post_attention_layernorm = register_module("post_attention_layernorm", make_norm());
  }
  // input: (B, T, C) -> (B, T, C). Attention and MLP run as the model's parts.
  at::Tensor forward(Model& model, const at::Tensor& input, const Rotation& rotation) const {
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

  std::shared_ptr<Attention> self_attn;
  std::shared_ptr<Mlp> mlp;
  std::shared_ptr<RmsNorm> input_layernorm, post_attention_layernorm;

 private:
  // residual + x, the latter scaled where the model does.
  at::Tensor add(const at::Tensor& residual, const at::Tensor& x) const {
    return residual + (residual_scale_ ? times(x, *residual_scale_) : x);
  }
  std::optional<double> residual_scale_;
};

// LlamaModel and its like: embedding, layers "layers.i", final norm. Who runs the layers decides
// how (Model::run_block).
class DecoderModel : public torch::nn::Module {
 public:
  DecoderModel(const DecoderConfig& config, const at::TensorOptions& options) {
    embed_tokens = register_module(
        "embed_tokens", std::make_shared<nn::Embedding>(config.vocabulary, config.width, options));
    fill_normal(embed_tokens->weight, kInitialDeviation);
    auto list = register_module("layers", std::make_shared<torch::nn::Module>());
    for (std::int64_t i = 0; i < config.layers; ++i) {
      layers.push_back(list->register_module(std::to_string(i),
                                             std::make_shared<DecoderLayer>(config, options)));
    }
    norm =
        register_module("norm", std::make_shared<RmsNorm>(config.width, config.norm_eps, options));
    rotary_emb = register_module(
        "rotary_emb",
        std::make_shared<RotaryEmbedding>(config.head_width(), config.rope, options.device()));
  }

  std::shared_ptr<nn::Embedding> embed_tokens;
  std::vector<std::shared_ptr<DecoderLayer>> layers;
  std::shared_ptr<RmsNorm> norm;
  std::shared_ptr<RotaryEmbedding> rotary_emb;
};

class CausalLm : public torch::nn::Module {
 public:
  CausalLm(const DecoderConfig& c, const at::TensorOptions& options) : config(c) {
    model = register_module("model", std::make_shared<DecoderModel>(config, options));
    if (config.tied_embeddings) {
      tied_head_ = register_module("lm_head",
                                   std::make_shared<language_model::TiedHead>(model->embed_tokens));
    } else {
      lm_head =
          register_module("lm_head", make_linear(config.width, config.vocabulary, false, options));
    }
  }
  // (B, T, C) -> (B, T, V)
  at::Tensor logits(const at::Tensor& hidden_states) const {
    const at::Tensor logits =
        lm_head ? lm_head->forward(hidden_states) : tied_head_->forward(hidden_states);
    return config.scales ? divided(logits, config.scales->logits) : logits;
  }

  DecoderConfig config;
  std::shared_ptr<DecoderModel> model;
  std::shared_ptr<nn::Linear> lm_head;  // null where the head is the embedding's weight

 private:
  std::shared_ptr<language_model::TiedHead> tied_head_;
};

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
