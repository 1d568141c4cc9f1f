// The kernels of the modules that a process loads.
#pragma once

#include "core/api.h"
#include "core/cubin.h"

namespace peakbench::emulator {

// Of a cubin, or of the code in a fat binary that the card would run; empty for PTX. They last
// until they are forgotten, and are the core's to free.
PEAKBENCH_EMULATOR_API const Kernels* read_kernels(const void* image);
PEAKBENCH_EMULATOR_API void forget_kernels(const Kernels* kernels);

}  // namespace peakbench::emulator
