// torchvision.models.resnet.ResNet of Bottlenecks as a module tree: same names, same order of
// parameters.
#pragma once

#include <array>
#include <vector>

#include "bottleneck.h"
#include "config.h"

namespace peakbench::resnet {

// "layer1" to "layer4": nn.Sequential of bottlenecks.
class Stage : public torch::nn::Module {
 public:
  // Its first bottleneck has the shape, the others keep the size.
  Stage(const BottleneckShape& first, std::int64_t blocks, const Placement& placement);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  std::vector<std::shared_ptr<Bottleneck>> blocks_;
};

class ResidualNetwork : public torch::nn::Module {
 public:
  ResidualNetwork(const ResNetConfig& config, const at::TensorOptions& options);
  at::Tensor features(const at::Tensor& images) const;  // (B, 3, H, W) -> (B, C)

  ResNetConfig config;
  std::shared_ptr<nn::Linear> fc;

 private:
  std::shared_ptr<Conv2d> conv1_;
  std::shared_ptr<BatchNorm2d> bn1_;
  std::array<std::shared_ptr<Stage>, 4> stages_;
};

}  // namespace peakbench::resnet
