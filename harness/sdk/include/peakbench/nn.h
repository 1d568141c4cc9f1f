// These layers make their parameters directly on a device in a dtype. Their operators, parameter
// names and parameter order are those of the torch.nn layers with the same names. Each forward
// reports its module to the tracer (ModuleScope).
//
// LibTorch's own layers are made on the CPU in float and moved afterwards, which costs the memory
// twice. They also draw initial values, although each model has its own initialisation. The layers
// below draw no values.
//
// A parameter described as uninitialised comes from unfilled.h, and the model must fill it. It uses
// initialise.h or, for linear layers, a FillWeight. If a model forgets a parameter:
// - On the CPU, the case ends as `crashed`, with the parameter's name.
// - On other devices, the mistake is not detected. Memory is the same, and the model trains on
//   whatever values the memory held.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <vector>

namespace peakbench::nn {

class LinearLayer;

// Replaces the forward of a linear layer, while the layer itself stays. Low-rank adapters use it.
class LinearAdapter : public torch::nn::Module {
 public:
  // x: (..., in) -> (..., out). `base` is the layer that the adapter is attached to.
  virtual at::Tensor forward(const LinearLayer& base, const at::Tensor& x) = 0;
};

// Replaces the weight of a linear layer, for example by a quantised weight. It keeps its data in
// buffers.
class LinearWeight : public torch::nn::Module {
 public:
  // Returns y = x W^T + b. x: (..., in) -> (..., out). `bias` (out) may be undefined.
  virtual at::Tensor linear(const at::Tensor& x, const at::Tensor& bias) = 0;
  // Returns the weight as (out, in), in the dtype that `linear` computes in.
  virtual at::Tensor dense() = 0;
};

// Fills a new weight with its values in place, on the weight's device and in its dtype.
using FillWeight = std::function<void(const at::Tensor& weight)>;

// A scope in which the weights of linear layers are made on demand. It affects layers that are made
// on this thread with a FillWeight. Their `weight` is a meta tensor without memory until the weight
// is needed.
//
// The worker builds a model in this scope if a strategy quantises its weights. Loaders of quantised
// models work the same way: the unquantised model never exists as a whole.
class WeightsOnDemand {
 public:
  WeightsOnDemand();
  ~WeightsOnDemand();
  WeightsOnDemand(const WeightsOnDemand&) = delete;
  WeightsOnDemand& operator=(const WeightsOnDemand&) = delete;

 private:
  bool before_;
};

// A layer that multiplies by a matrix. Derived classes decide how the matrix is stored.
class LinearLayer : public torch::nn::Module {
 public:
  at::Tensor forward(const at::Tensor& x) const;       // (..., in) -> (..., out)
  at::Tensor base_forward(const at::Tensor& x) const;  // the same, without the adapter

  // Registers the adapter as submodule `name`, so that its parameters are found. A layer has at
  // most one adapter. Throws std::logic_error if the layer has one already.
  void attach(const std::string& name, std::shared_ptr<LinearAdapter> adapter);
  bool has_adapter() const { return adapter_ != nullptr; }

  // Drops the parameter `weight` and registers `replacement` under its name. Throws
  // std::logic_error if the weight was replaced before.
  void replace_weight(std::shared_ptr<LinearWeight> replacement);
  bool has_plain_weight() const { return replacement_ == nullptr; }

  std::int64_t in_features() const { return in_; }
  std::int64_t out_features() const { return out_; }
  // Returns whether the weight is not made yet. This is possible only for a layer that was made
  // under WeightsOnDemand.
  bool has_waiting_weight() const { return fill_ != nullptr; }
  // Makes and fills the weight if it is not made yet. The weight keeps its position among the
  // parameters and its requires_grad.
  void make_weight();
  // Replaces the function that will fill a weight that is not made yet, for example to read it from
  // a file. Throws std::logic_error if no such weight exists.
  void fill_from(FillWeight fill);

  // Returns the device and the dtype that the layer computes with, also after the weight was
  // replaced.
  const at::TensorOptions& options() const { return options_; }
  // Returns the weight as (out, in). The function computes it if the layer stores it in another
  // form, and makes it first if it is not made yet.
  at::Tensor dense_weight() const;

  // `weight` has the layout of the reference implementation. It is undefined after it was replaced,
  // and has no memory until it is made. `bias` is (out).
  at::Tensor weight, bias;

 protected:
  LinearLayer(std::int64_t in, std::int64_t out, const at::TensorOptions& options);
  // Registers the parameter `weight`. With `fill`, the weight is filled now, or on demand. Without
  // `fill`, the code that made the layer fills it.
  void register_weight(at::IntArrayRef shape, FillWeight fill);
  // Multiplies x by `weight` as stored, and adds `bias`.
  virtual at::Tensor multiply(const at::Tensor& x) const = 0;
  virtual at::Tensor weight_as_matrix() const = 0;  // (out, in)

 private:
  std::int64_t in_, out_;
  at::TensorOptions options_;
  std::shared_ptr<LinearAdapter> adapter_;
  std::shared_ptr<LinearWeight> replacement_;
  FillWeight fill_;  // set until a weight on demand is made
};

// y = x W^T + b.
// - weight: (out, in), uninitialised without `fill`.
// - bias: (out), uninitialised.
// Source: torch/nn/modules/linear.py.
class Linear : public LinearLayer {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias,
         const at::TensorOptions& options, FillWeight fill = nullptr);

 protected:
  at::Tensor multiply(const at::Tensor& x) const override;
  at::Tensor weight_as_matrix() const override { return weight; }
};

// y = x W + b, the layout of GPT-2.
// - weight: (in, out), uninitialised without `fill`.
// - bias: (out), zeros.
// Source: transformers 5.23.0, pytorch_utils.py: Conv1D.
class Conv1d : public LinearLayer {
 public:
  Conv1d(std::int64_t in_features, std::int64_t out_features, const at::TensorOptions& options,
         FillWeight fill = nullptr);

 protected:
  at::Tensor multiply(const at::Tensor& x) const override;
  at::Tensor weight_as_matrix() const override { return weight.t(); }
};

// Layer normalisation over the last dimension.
// - weight: (features), ones.
// - bias: (features), zeros.
// Source: torch/nn/modules/normalization.py.
class LayerNorm : public torch::nn::Module {
 public:
  LayerNorm(std::int64_t features, double eps, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor weight, bias;

 private:
  double eps_;
};

// Looks up rows of a table.
// - weight: (count, features), uninitialised.
// - forward: indices (...) int64 -> (..., features).
// Source: torch/nn/modules/sparse.py.
class Embedding : public torch::nn::Module {
 public:
  Embedding(std::int64_t count, std::int64_t features, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& indices) const;
  at::Tensor weight;
};

// A convolution with a square kernel, equal strides and no padding.
// - weight: (out, in, k, k), uninitialised.
// - bias: (out), uninitialised.
// Source: torch/nn/modules/conv.py.
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
