// The sizes of a ResNet, from its options.
#pragma once

#include <array>
#include <cstdint>

#include "peakbench/options.h"

namespace peakbench::resnet {

struct ResNetConfig {
  std::array<std::int64_t, 4> blocks;  // of each stage
  std::int64_t width, image, classes = 1000;
  bool channels_last;
};

// Throws OptionError for blocks that are not four numbers.
ResNetConfig config_from(const Options& options);

}  // namespace peakbench::resnet
