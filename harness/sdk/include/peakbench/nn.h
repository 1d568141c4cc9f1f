// Layers whose parameters are made directly on a device in a dtype, with the operators and the
// parameter names and order of their torch.nn namesakes. Each forward tells the tracer its module
// (ModuleScope).
//
// LibTorch's own layers can only be made on the CPU in float and moved afterwards, which costs the
// memory twice.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <vector>

namespace peakbench::nn {

class Linear;

// Replaces a Linear's forward while keeping its weight: low-rank adapters, quantised weights.
class LinearAdapter : public torch::nn::Module {
 public:
  // x: (..., in) -> (..., out). `base` is the layer it is attached to.
  virtual at::Tensor forward(const Linear& base, const at::Tensor& x) = 0;
};

// y = x W^T + b. weight: (out, in), bias: (out). torch/nn/modules/linear.py
class Linear : public torch::nn::Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias,
         const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor base_forward(const at::Tensor& x) const;  // without the adapter
  // Registers the adapter as submodule `name`, so that its parameters are found. One adapter a
  // layer: throws std::logic_error for a second.
  void attach(const std::string& name, std::shared_ptr<LinearAdapter> adapter);

  at::Tensor weight, bias;

 private:
  std::shared_ptr<LinearAdapter> adapter_;
};

// torch/nn/modules/normalization.py: LayerNorm over the last dimension. weight, bias: (features).
class LayerNorm : public torch::nn::Module {
 public:
  LayerNorm(std::int64_t features, double eps, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor weight, bias;

 private:
  double eps_;
};

// torch/nn/modules/sparse.py. weight: (count, features); indices: (...) int64 -> (..., features)
class Embedding : public torch::nn::Module {
 public:
  Embedding(std::int64_t count, std::int64_t features, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& indices) const;
  at::Tensor weight;
};

// torch/nn/modules/conv.py: square kernel and stride, no padding. weight: (out, in, k, k), bias:
// (out).
class Conv2d : public torch::nn::Module {
 public:
  Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
         const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor weight, bias;

 private:
  std::int64_t stride_;
};

}  // namespace peakbench::nn
