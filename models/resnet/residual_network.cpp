#include "residual_network.h"

#include <ATen/ATen.h>

#include <cmath>

#include "peakbench/observer.h"

namespace peakbench::resnet {

Stage::Stage(const BottleneckShape& first, std::int64_t blocks, const Placement& placement) {
  for (std::int64_t i = 0; i < blocks; ++i) {
    const BottleneckShape shape =
        i == 0 ? first : BottleneckShape{first.out, first.inner, first.out, 1};
    blocks_.push_back(
        register_module(std::to_string(i), std::make_shared<Bottleneck>(shape, placement)));
  }
}

at::Tensor Stage::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor x = input;
  for (const auto& block : blocks_) x = block->forward(x);
  return x;
}

ResidualNetwork::ResidualNetwork(const ResNetConfig& c, const at::TensorOptions& options)
    : config(c) {
  constexpr std::int64_t kStem = 64, kExpansion = 4;
  const Placement placement{options, config.channels_last ? at::MemoryFormat::ChannelsLast
                                                          : at::MemoryFormat::Contiguous};
  conv1_ = register_module("conv1", std::make_shared<Conv2d>(3, kStem, 7, 2, placement));
  bn1_ = register_module("bn1", std::make_shared<BatchNorm2d>(kStem, options));
  std::int64_t in = kStem;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const std::int64_t factor = 1 << i;
    const BottleneckShape first{in, config.width * factor, kStem * factor * kExpansion,
                                i == 0 ? 1 : 2};
    stages_[i] = register_module("layer" + std::to_string(i + 1),
                                 std::make_shared<Stage>(first, config.blocks[i], placement));
    in = first.out;
  }
  fc = register_module("fc", std::make_shared<nn::Linear>(in, config.classes, true, options));
  const at::NoGradGuard no_grad;
  const double bound = 1.0 / std::sqrt(static_cast<double>(in));  // nn.Linear's own
  fc->weight.uniform_(-bound, bound);
  fc->bias.uniform_(-bound, bound);
}

at::Tensor ResidualNetwork::features(const at::Tensor& images) const {
  at::Tensor x = conv1_->forward(images);
  x = bn1_->forward(x);
  at::relu_(x);
  x = at::max_pool2d(x, /*kernel_size=*/{3, 3}, /*stride=*/{2, 2}, /*padding=*/{1, 1});
  for (const auto& stage : stages_) x = stage->forward(x);
  x = at::adaptive_avg_pool2d(x, {1, 1});
  return at::flatten(x, 1);
}

}  // namespace peakbench::resnet
