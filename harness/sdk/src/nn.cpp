#include "peakbench/nn.h"

#include <ATen/ATen.h>

#include <stdexcept>

#include "peakbench/observer.h"

namespace peakbench::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias,
               const at::TensorOptions& options) {
  weight = register_parameter("weight", at::empty({out_features, in_features}, options));
  if (with_bias) bias = register_parameter("bias", at::empty({out_features}, options));
}

at::Tensor Linear::base_forward(const at::Tensor& x) const { return at::linear(x, weight, bias); }

at::Tensor Linear::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return adapter_ ? adapter_->forward(*this, x) : base_forward(x);
}

void Linear::attach(const std::string& name, std::shared_ptr<LinearAdapter> adapter) {
  if (adapter_)
    throw std::logic_error("a linear layer takes one adapter, '" + name + "' would be its second");
  adapter_ = register_module(name, std::move(adapter));
}

LayerNorm::LayerNorm(std::int64_t features, double eps, const at::TensorOptions& options)
    : eps_(eps) {
  weight = register_parameter("weight", at::ones({features}, options));
  bias = register_parameter("bias", at::zeros({features}, options));
}

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return at::layer_norm(x, weight.sizes(), weight, bias, eps_);
}

Embedding::Embedding(std::int64_t count, std::int64_t features, const at::TensorOptions& options) {
  weight = register_parameter("weight", at::empty({count, features}, options));
}

at::Tensor Embedding::forward(const at::Tensor& indices) const {
  ModuleScope scope(*this);
  return at::embedding(weight, indices);
}

Conv2d::Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
               const at::TensorOptions& options)
    : stride_(stride) {
  weight = register_parameter("weight", at::empty({out, in, kernel, kernel}, options));
  bias = register_parameter("bias", at::empty({out}, options));
}

at::Tensor Conv2d::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return at::conv2d(x, weight, bias, {stride_, stride_});
}

}  // namespace peakbench::nn
