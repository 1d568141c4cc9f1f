// Layers whose parameters are made directly on a device in a dtype, with the operators and the
// parameter names and order of their torch.nn namesakes. Each forward tells the tracer its module
// (ModuleScope).
//
// LibTorch's own layers can only be made on the CPU in float and moved afterwards, which costs the
// memory twice; and they draw initial values, of which each model has its own. These draw none:
// what is called uninitialised below is (unfilled.h), until the model fills it (initialise.h;
// FillWeight, of linear layers). A model that forgets one is `crashed` on the CPU with the
// parameter's name. On other devices nobody notices: memory is the same, and the training is one of
// whatever was there.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <vector>

namespace peakbench::nn {

class LinearLayer;

// Takes the place of a linear layer's forward while the layer stays: low-rank adapters.
class LinearAdapter : public torch::nn::Module {
 public:
  // x: (..., in) -> (..., out). `base` is the layer it is attached to.
  virtual at::Tensor forward(const LinearLayer& base, const at::Tensor& x) = 0;
};

// Takes the place of a linear layer's weight: quantised weights. What it holds are its buffers.
class LinearWeight : public torch::nn::Module {
 public:
  // y = x W^T + b. x: (..., in) -> (..., out). `bias` (out) may be undefined.
  virtual at::Tensor linear(const at::Tensor& x, const at::Tensor& bias) = 0;
  // (out, in), in the dtype that `linear` computes in.
  virtual at::Tensor dense() = 0;
};

// Gives a new weight its values, in place: on its device, in its dtype.
using FillWeight = std::function<void(const at::Tensor& weight)>;

// While one lives, a linear layer made on this thread with a FillWeight has a `weight` without
// memory (a meta tensor) until the weight is needed. So does the worker build a model whose weights
// a strategy quantises, as loaders of quantised models do: never is the whole model there as it
// was.
class WeightsOnDemand {
 public:
  WeightsOnDemand();
  ~WeightsOnDemand();
  WeightsOnDemand(const WeightsOnDemand&) = delete;
  WeightsOnDemand& operator=(const WeightsOnDemand&) = delete;

 private:
  bool before_;
};

// A layer that multiplies by a matrix, however it keeps it.
class LinearLayer : public torch::nn::Module {
 public:
  at::Tensor forward(const at::Tensor& x) const;       // (..., in) -> (..., out)
  at::Tensor base_forward(const at::Tensor& x) const;  // without the adapter

  // Registers the adapter as submodule `name`, so that its parameters are found. One adapter a
  // layer: throws std::logic_error for a second.
  void attach(const std::string& name, std::shared_ptr<LinearAdapter> adapter);
  bool has_adapter() const { return adapter_ != nullptr; }

  // Drops the parameter `weight` and registers `replacement` under its name. Once a layer: throws
  // std::logic_error for a second.
  void replace_weight(std::shared_ptr<LinearWeight> replacement);
  bool has_plain_weight() const { return replacement_ == nullptr; }

  std::int64_t in_features() const { return in_; }
  std::int64_t out_features() const { return out_; }
  // True until somebody needs the weight of a layer that was made under WeightsOnDemand.
  bool has_waiting_weight() const { return fill_ != nullptr; }
  // Makes and fills a weight that waits. In its order among the parameters, as trainable as it was.
  void make_weight();
  // What a weight that waits is filled from instead: a file. Throws std::logic_error where it does
  // not wait.
  void fill_from(FillWeight fill);

  // Device and dtype of what it computes with, also when the weight was replaced.
  const at::TensorOptions& options() const { return options_; }
  // (out, in); computed where the layer keeps it otherwise, made where it waits.
  at::Tensor dense_weight() const;

  // `weight` as the reference implementation keeps it; undefined once it was replaced, without
  // memory while it waits. bias: (out).
  at::Tensor weight, bias;

 protected:
  LinearLayer(std::int64_t in, std::int64_t out, const at::TensorOptions& options);
  // With `fill` it is filled now, or waits; without, whoever made the layer fills it.
  void register_weight(at::IntArrayRef shape, FillWeight fill);
  // With `weight` and `bias` as they are.
  virtual at::Tensor multiply(const at::Tensor& x) const = 0;
  virtual at::Tensor weight_as_matrix() const = 0;  // (out, in)

 private:
  std::int64_t in_, out_;
  at::TensorOptions options_;
  std::shared_ptr<LinearAdapter> adapter_;
  std::shared_ptr<LinearWeight> replacement_;
  FillWeight fill_;  // of a weight that waits
};

// y = x W^T + b. weight: (out, in), uninitialised without `fill`; bias: (out), uninitialised.
// torch/nn/modules/linear.py
class Linear : public LinearLayer {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias,
         const at::TensorOptions& options, FillWeight fill = nullptr);

 protected:
  at::Tensor multiply(const at::Tensor& x) const override;
  at::Tensor weight_as_matrix() const override { return weight; }
};

// y = x W + b, as GPT-2 keeps it. weight: (in, out), uninitialised without `fill`; bias: (out),
// zeros. transformers 5.23.0, pytorch_utils.py: Conv1D
class Conv1d : public LinearLayer {
 public:
  Conv1d(std::int64_t in_features, std::int64_t out_features, const at::TensorOptions& options,
         FillWeight fill = nullptr);

 protected:
  at::Tensor multiply(const at::Tensor& x) const override;
  at::Tensor weight_as_matrix() const override { return weight.t(); }
};

// torch/nn/modules/normalization.py: LayerNorm over the last dimension. weight, bias: (features),
// ones and zeros.
class LayerNorm : public torch::nn::Module {
 public:
  LayerNorm(std::int64_t features, double eps, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor weight, bias;

 private:
  double eps_;
};

// torch/nn/modules/sparse.py. weight: (count, features), uninitialised; indices: (...) int64 ->
// (..., features)
class Embedding : public torch::nn::Module {
 public:
  Embedding(std::int64_t count, std::int64_t features, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& indices) const;
  at::Tensor weight;
};

// torch/nn/modules/conv.py: square kernel and stride, no padding. weight: (out, in, k, k), bias:
// (out), both uninitialised.
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
