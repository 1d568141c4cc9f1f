// Small layers of a Hugging Face decoder. Source: transformers 5.23.0,
// models/llama/modeling_llama.py, models/qwen2/modeling_qwen2.py,
// models/mistral/modeling_mistral.py and models/granite/modeling_granite.py.
#pragma once

#include "config.h"
#include "peakbench/nn.h"

namespace peakbench::decoder {

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

}  // namespace peakbench::decoder
