// The release of cuDNN that this one stands in for.
#pragma once

#include <cstddef>

namespace peakbench::emulator::cudnn {

// As cudnnGetVersion counts it: 91900. It is the one that the program's PyTorch is released with,
// or else the one of this build's LibTorch.
std::size_t version();

}  // namespace peakbench::emulator::cudnn
