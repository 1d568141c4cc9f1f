#include "bottleneck.h"

#include <ATen/ATen.h>

#include "peakbench/observer.h"

namespace peakbench::resnet {

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
