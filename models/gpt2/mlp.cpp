#include "mlp.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <cmath>
#include <numbers>

#include "peakbench/observer.h"

namespace peakbench::gpt2 {
namespace {

// tensor * number as Python runs it: the number becomes a tensor, which autograd keeps.
at::Tensor times(const at::Tensor& tensor, double number) {
  return at::mul(tensor, at::native::wrapped_scalar_tensor(number));
}

// "gelu_new": operator by operator, as transformers writes it. One statement an operator: each
// intermediate is freed where Python frees it.
at::Tensor new_gelu(const at::Tensor& x) {
  const at::Tensor half = times(x, 0.5);
  at::Tensor y = times(at::pow(x, 3.0), 0.044715);
  y = x + y;
  y = times(y, std::sqrt(2.0 / std::numbers::pi));
  y = at::tanh(y);
  y = y + 1.0;
  return half * y;
}

}  // namespace

Mlp::Mlp(const Gpt2Config& config, const at::TensorOptions& options) : dropout_(config.dropout) {
  c_fc = register_module("c_fc", std::make_shared<nn::Conv1d>(config.width, config.mlp, options));
  c_proj =
      register_module("c_proj", std::make_shared<nn::Conv1d>(config.mlp, config.width, options));
}

at::Tensor Mlp::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor x = c_fc->forward(input);  // (B, T, mlp)
  x = new_gelu(x);
  x = c_proj->forward(x);
  return at::dropout(x, dropout_, /*train=*/true);
}

}  // namespace peakbench::gpt2
