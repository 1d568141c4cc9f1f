#include "layers.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <cmath>
#include <map>
#include <numbers>
#include <stdexcept>

#include "peakbench/errors.h"
#include "peakbench/initialise.h"
#include "peakbench/observer.h"

namespace peakbench::decoder {
namespace {

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

}  // namespace

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

namespace {

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

// (..., D) -> (..., D): the second half negated, then the first.
at::Tensor rotate_half(const at::Tensor& x) {
  const std::int64_t half = x.size(-1) / 2;
  // Sliced in this order: backward goes through them in the opposite one.
  const at::Tensor first = x.slice(-1, 0, half), second = x.slice(-1, half);
  return at::cat({-second, first}, -1);
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(std::int64_t head_width, const RopeConfig& rope,
                                 const at::Device& device) {
  const at::NoGradGuard no_grad;
  const at::Tensor frequencies = inverse_frequencies(head_width, rope);
  inv_freq = register_buffer("inv_freq", frequencies.to(device));
  original_inv_freq = register_buffer("original_inv_freq", inv_freq.clone());
}

std::pair<at::Tensor, at::Tensor> RotaryEmbedding::forward(const at::Tensor& positions,
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

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
  const at::Tensor direct = x * cosine;
  const at::Tensor turned = rotate_half(x) * sine;
  return direct + turned;
}

std::shared_ptr<nn::Linear> make_linear(std::int64_t in, std::int64_t out, bool bias,
                                        const at::TensorOptions& options) {
  auto linear = std::make_shared<nn::Linear>(in, out, bias, options, [](const at::Tensor& weight) {
    fill_normal(weight, kInitialDeviation);
  });
  const at::NoGradGuard no_grad;
  if (bias) linear->bias.zero_();
  return linear;
}

at::Tensor times(const at::Tensor& tensor, double number) {
  return at::mul(tensor, at::native::wrapped_scalar_tensor(number));
}

at::Tensor divided(const at::Tensor& tensor, double number) {
  return at::div(tensor, at::native::wrapped_scalar_tensor(number));
}

RmsNorm::RmsNorm(std::int64_t features, double eps, const at::TensorOptions& options) : eps_(eps) {
  weight = register_parameter("weight", at::ones({features}, options));
}

// Locals live and die as the reference's do: without gradients (or with what autograd saves packed
// away) they alone decide the peak.
at::Tensor RmsNorm::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor x = input.to(at::kFloat);
  const at::Tensor variance = x.pow(2).mean(-1, /*keepdim=*/true);  // (B, T, 1)
  {
    const at::Tensor inverse = at::rsqrt(variance + eps_);
    x = x * inverse;
  }
  return weight * x.to(input.scalar_type());
}

Mlp::Mlp(const DecoderConfig& config, const at::TensorOptions& options) {
  const auto add = [&](const char* name, std::int64_t in, std::int64_t out) {
    return register_module(name, make_linear(in, out, false, options));
  };
  gate_proj = add("gate_proj", config.width, config.mlp);
  up_proj = add("up_proj", config.width, config.mlp);
  down_proj = add("down_proj", config.mlp, config.width);
}

at::Tensor Mlp::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  at::Tensor inner;  // (B, T, mlp)
  {
    const at::Tensor activated = at::silu(gate_proj->forward(x));
    inner = activated * up_proj->forward(x);
  }
  return down_proj->forward(inner);
}

namespace {

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

}  // namespace

Attention::Attention(const DecoderConfig& config, const at::TensorOptions& options)
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

at::Tensor Attention::forward(const at::Tensor& input, const at::Tensor& cosine,
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

}  // namespace peakbench::decoder
