// Source: transformers 5.23.0, GPT2MLP and activations.py, NewGELUActivation.
#pragma once

#include "config.h"
#include "peakbench/nn.h"

namespace peakbench::gpt2 {

// c_fc: (C, mlp), c_proj: (mlp, C), both transposed as in Conv1D.
class Mlp : public torch::nn::Module {
 public:
  Mlp(const Gpt2Config& config, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& input) const;  // (B, T, C) -> (B, T, C)

  std::shared_ptr<nn::Conv1d> c_fc, c_proj;

 private:
  double dropout_;
};

}  // namespace peakbench::gpt2
