#pragma once

#include <cstddef>

namespace peakbench::emulator::cudnn {

// The release of cuDNN that this library replaces.

// As cudnnGetVersion counts it: 91900. It is the one that the program's PyTorch is released with,
// or else the one of this build's LibTorch.
std::size_t version();

// The values of cudnnStatus_t that are used.

inline constexpr int kNotInitialized = 1001;
inline constexpr int kBadParameter = 2000;
inline constexpr int kNotSupported = 3000;

}  // namespace peakbench::emulator::cudnn
