#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "layers.h"
#include "peakbench/options.h"

namespace peakbench::resnet {

// The sizes of a ResNet, from its options.

struct ResNetConfig {
  std::array<std::int64_t, 4> blocks;  // of each stage
  std::int64_t width, image, classes = 1000;
  bool channels_last;
};

// Throws OptionError for blocks that are not four numbers.
ResNetConfig config_from(const Options& options);

// torchvision.models.resnet.ResNet of Bottlenecks as a module tree: same names, same order of
// parameters.

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
