// cudnnStatus_t, as far as the stand-in says it.
#pragma once

namespace peakbench::emulator::cudnn {

inline constexpr int kNotInitialized = 1001;
inline constexpr int kBadParameter = 2000;
inline constexpr int kNotSupported = 3000;

}  // namespace peakbench::emulator::cudnn
