// Kernels of modules that were loaded.
#pragma once

#include <cuda.h>

#include <optional>

#include "core/cubin.h"
#include "core/kernels.h"

namespace peakbench::emulator::driver {

struct Function {
  std::optional<KernelFacts> facts;  // nullopt where its image could not be read
  KernelSettings settings;
};

// Nullopt for a handle that no module gave.
std::optional<Function> function_of(CUfunction function);

}  // namespace peakbench::emulator::driver
