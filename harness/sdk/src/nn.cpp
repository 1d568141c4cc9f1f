#include "peakbench/nn.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>

#include "peakbench/observer.h"
#include "peakbench/unfilled.h"

namespace peakbench::nn {

namespace {

// Of the thread that builds a model.
thread_local bool on_demand = false;

}  // namespace

WeightsOnDemand::WeightsOnDemand() : before_(std::exchange(on_demand, true)) {}
WeightsOnDemand::~WeightsOnDemand() { on_demand = before_; }

LinearLayer::LinearLayer(std::int64_t in, std::int64_t out, const at::TensorOptions& options)
    : in_(in), out_(out), options_(options) {}

at::Tensor LinearLayer::base_forward(const at::Tensor& x) const {
  return replacement_ ? replacement_->linear(x, bias) : multiply(x);
}

at::Tensor LinearLayer::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return adapter_ ? adapter_->forward(*this, x) : base_forward(x);
}

void LinearLayer::register_weight(at::IntArrayRef shape, FillWeight fill) {
  const bool waits = fill && on_demand;
  weight = register_parameter("weight", waits  ? at::empty(shape, options_.device(at::kMeta))
                                        : fill ? at::empty(shape, options_)
                                               : unfilled(shape, options_));
  const at::NoGradGuard no_grad;
  if (waits)
    fill_ = std::move(fill);
  else if (fill)
    fill(weight);
}

void LinearLayer::make_weight() {
  if (!fill_) return;
  const at::NoGradGuard no_grad;
  at::Tensor made = at::empty(weight.sizes(), options_);
  std::exchange(fill_, nullptr)(made);
  weight = parameters_["weight"] = made.set_requires_grad(weight.requires_grad());
}

void LinearLayer::fill_from(FillWeight fill) {
  if (!fill_) throw std::logic_error("the weight of a linear layer is filled already");
  fill_ = std::move(fill);
}

at::Tensor LinearLayer::dense_weight() const {
  // Whoever asks finds the layer as it would be: a weight that waits is no other weight.
  const_cast<LinearLayer*>(this)->make_weight();
  return replacement_ ? replacement_->dense() : weight_as_matrix();
}

void LinearLayer::attach(const std::string& name, std::shared_ptr<LinearAdapter> adapter) {
  if (adapter_)
    throw std::logic_error("a linear layer takes one adapter, '" + name + "' would be its second");
  adapter_ = register_module(name, std::move(adapter));
}

void LinearLayer::replace_weight(std::shared_ptr<LinearWeight> replacement) {
  if (replacement_)
    throw std::logic_error("a linear layer's weight is replaced once; it was replaced already");
  parameters_.erase("weight");
  weight.reset();
  fill_ = nullptr;
  replacement_ = register_module("weight", std::move(replacement));
}

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias,
               const at::TensorOptions& options, FillWeight fill)
    : LinearLayer(in_features, out_features, options) {
  register_weight({out_features, in_features}, std::move(fill));
  if (with_bias) bias = register_parameter("bias", unfilled({out_features}, options));
}

at::Tensor Linear::multiply(const at::Tensor& x) const { return at::linear(x, weight, bias); }

Conv1d::Conv1d(std::int64_t in_features, std::int64_t out_features,
               const at::TensorOptions& options, FillWeight fill)
    : LinearLayer(in_features, out_features, options) {
  register_weight({in_features, out_features}, std::move(fill));
  bias = register_parameter("bias", at::zeros({out_features}, options));
}

at::Tensor Conv1d::multiply(const at::Tensor& x) const {
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = out_features();
  return at::addmm(bias, x.view({-1, x.size(-1)}), weight).view(shape);
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
  weight = register_parameter("weight", unfilled({count, features}, options));
}

at::Tensor Embedding::forward(const at::Tensor& indices) const {
  ModuleScope scope(*this);
  return at::embedding(weight, indices);
}

Conv2d::Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
               const at::TensorOptions& options)
    : stride_(stride) {
  weight = register_parameter("weight", unfilled({out, in, kernel, kernel}, options));
  bias = register_parameter("bias", unfilled({out}, options));
}

at::Tensor Conv2d::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return at::conv2d(x, weight, bias, {stride_, stride_});
}

}  // namespace peakbench::nn
