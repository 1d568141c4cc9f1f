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

}  // namespace peakbench::resnet
