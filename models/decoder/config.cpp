#include "config.h"

#include <map>
#include <stdexcept>

#include "peakbench/errors.h"

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

}  // namespace peakbench::decoder
