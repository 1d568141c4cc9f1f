// The weights of the planted models that read tokens.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>

namespace peakbench {

inline constexpr std::int64_t kTokens = 6, kVocabulary = 16, kWidth = 8, kIgnored = -100;

// Drawn from N(0, deviation).
struct TokenWeights : torch::nn::Module {
  explicit TokenWeights(const at::TensorOptions& options, double deviation = 1) {
    const auto made = [&](const char* name, std::int64_t rows) {
      return register_parameter(name, at::randn({rows, kWidth}, options).mul_(deviation));
    };
    embedding = made("embedding", kVocabulary);
    inner = made("inner", kWidth);
    head = made("head", kVocabulary);
  }
  at::Tensor embedding, inner, head;
};

}  // namespace peakbench
