// The sizes of a decoder, by id and options. Official values: config.json of each model on Hugging
// Face (the manifest has the addresses).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "peakbench/options.h"

namespace peakbench::decoder {

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

}  // namespace peakbench::decoder
