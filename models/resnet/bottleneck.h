// torchvision's Bottleneck: 1 x 1, 3 x 3 (with the stride) and 1 x 1 convolutions beside a
// shortcut. Source: torchvision/models/resnet.py.
#pragma once

#include "layers.h"

namespace peakbench::resnet {

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
