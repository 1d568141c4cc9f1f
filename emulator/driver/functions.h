// Kernels of modules that were loaded.
#pragma once

#include <cuda.h>

#include <optional>

#include "driver/kernel_parameters.h"

namespace peakbench::emulator::driver {

// Nullopt where its image could not be read.
std::optional<ParameterSizes> parameters_of(CUfunction function);

}  // namespace peakbench::emulator::driver
