#include "layers.h"

#include <ATen/ATen.h>

#include <cmath>

#include "peakbench/observer.h"

namespace peakbench::resnet {

Conv2d::Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
               const Placement& placement)
    : stride_(stride), padding_(kernel / 2) {
  weight = register_parameter(
      "weight", at::empty({out, in, kernel, kernel}, placement.options, placement.format));
  const at::NoGradGuard no_grad;
  weight.normal_(0, std::sqrt(2.0 / static_cast<double>(out * kernel * kernel)));
}

at::Tensor Conv2d::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return at::conv2d(x, weight, /*bias=*/{}, {stride_, stride_}, {padding_, padding_});
}

BatchNorm2d::BatchNorm2d(std::int64_t features, const at::TensorOptions& options) {
  weight = register_parameter("weight", at::ones({features}, options));
  bias = register_parameter("bias", at::zeros({features}, options));
  running_mean = register_buffer("running_mean", at::zeros({features}, options));
  running_var = register_buffer("running_var", at::ones({features}, options));
  num_batches_tracked =
      register_buffer("num_batches_tracked", at::zeros({}, options.dtype(at::kLong)));
}

at::Tensor BatchNorm2d::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  constexpr double kMomentum = 0.1, kEps = 1e-5;
  {
    const at::NoGradGuard no_grad;
    at::Tensor(num_batches_tracked).add_(1);
  }
  return at::batch_norm(x, weight, bias, running_mean, running_var, /*training=*/true, kMomentum,
                        kEps, at::globalContext().userEnabledCuDNN());
}

Downsample::Downsample(const BottleneckShape& shape, const Placement& placement) {
  convolution_ = register_module(
      "0", std::make_shared<Conv2d>(shape.in, shape.out, 1, shape.stride, placement));
  norm_ = register_module("1", std::make_shared<BatchNorm2d>(shape.out, placement.options));
}

at::Tensor Downsample::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return norm_->forward(convolution_->forward(x));
}

Bottleneck::Bottleneck(const BottleneckShape& shape, const Placement& placement) {
  const auto convolution = [&](const char* name, std::int64_t in, std::int64_t out,
                               std::int64_t kernel, std::int64_t stride) {
    return register_module(name, std::make_shared<Conv2d>(in, out, kernel, stride, placement));
  };
  const auto norm = [&](const char* name, std::int64_t features) {
    return register_module(name, std::make_shared<BatchNorm2d>(features, placement.options));
  };
  conv1_ = convolution("conv1", shape.in, shape.inner, 1, 1);
  bn1_ = norm("bn1", shape.inner);
  conv2_ = convolution("conv2", shape.inner, shape.inner, 3, shape.stride);
  bn2_ = norm("bn2", shape.inner);
  conv3_ = convolution("conv3", shape.inner, shape.out, 1, 1);
  bn3_ = norm("bn3", shape.out);
  if (shape.stride != 1 || shape.in != shape.out)
    downsample_ = register_module("downsample", std::make_shared<Downsample>(shape, placement));
}

at::Tensor Bottleneck::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor identity = input;
  at::Tensor x = conv1_->forward(input);
  x = bn1_->forward(x);
  at::relu_(x);

  x = conv2_->forward(x);
  x = bn2_->forward(x);
  at::relu_(x);

  x = conv3_->forward(x);
  x = bn3_->forward(x);
  if (downsample_) identity = downsample_->forward(input);

  x.add_(identity);
  return at::relu_(x);
}

}  // namespace peakbench::resnet
