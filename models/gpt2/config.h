// The sizes of a GPT-2, from its options. Official values: config.json of each model on Hugging
// Face (the manifest has the addresses).
#pragma once

#include <cstdint>

#include "peakbench/options.h"

namespace peakbench::gpt2 {

struct Gpt2Config {
  std::int64_t layers, width, mlp, heads, positions, vocabulary;
  double dropout;  // of embeddings, attention's scores and what each block adds
};

// Throws OptionError for sizes that do not fit each other.
Gpt2Config config_from(const Options& options);

inline constexpr double kLayerNormEps = 1e-5;
inline constexpr double kInitialDeviation = 0.02;

}  // namespace peakbench::gpt2
