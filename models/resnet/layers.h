#pragma once

#include "peakbench/nn.h"

namespace peakbench::resnet {

// Convolution without a bias and batch normalisation, with the operators, names and order of their
// torch.nn namesakes. Source: torch/nn/modules/conv.py, torch/nn/modules/batchnorm.py.

// Device and dtype of the parameters, and how matrices of images lie in memory.
struct Placement {
  at::TensorOptions options;
  at::MemoryFormat format = at::MemoryFormat::Contiguous;
};

// Square kernel, padded so that stride 1 keeps the size. weight: (out, in, k, k), drawn as
// torchvision's ResNet draws it: kaiming_normal_, fan_out.
class Conv2d : public torch::nn::Module {
 public:
  Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
         const Placement& placement);
  at::Tensor forward(const at::Tensor& x) const;  // (B, in, H, W) -> (B, out, H', W')
  at::Tensor weight;

 private:
  std::int64_t stride_, padding_;
};

// In training: normalises by the batch's own statistics, and moves the running ones towards them.
// weight, bias, running_mean, running_var: (C); num_batches_tracked: () int64. The last three are
// buffers.
class BatchNorm2d : public torch::nn::Module {
 public:
  BatchNorm2d(std::int64_t features, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;  // (B, C, H, W) -> (B, C, H, W)
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

// torchvision's Bottleneck: 1 x 1, 3 x 3 (with the stride) and 1 x 1 convolutions beside a
// shortcut. Source: torchvision/models/resnet.py.

struct BottleneckShape {
  std::int64_t in, inner, out, stride;
};

// The shortcut where its size changes: nn.Sequential of a convolution "0" and a normalisation "1".
class Downsample : public torch::nn::Module {
 public:
  Downsample(const BottleneckShape& shape, const Placement& placement);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  std::shared_ptr<Conv2d> convolution_;
  std::shared_ptr<BatchNorm2d> norm_;
};

class Bottleneck : public torch::nn::Module {
 public:
  Bottleneck(const BottleneckShape& shape, const Placement& placement);
  at::Tensor forward(const at::Tensor& input) const;  // (B, in, H, W) -> (B, out, H', W')

 private:
  std::shared_ptr<Conv2d> conv1_, conv2_, conv3_;
  std::shared_ptr<BatchNorm2d> bn1_, bn2_, bn3_;
  std::shared_ptr<Downsample> downsample_;  // null where the input is added as it is
};

}  // namespace peakbench::resnet
