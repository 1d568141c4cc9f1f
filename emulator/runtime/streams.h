// The time between two events, under each of the names that CUDA has for it.
#pragma once

#include "runtime/names.h"

namespace peakbench::emulator::runtime {

// `caller`: the code of the program or of PyTorch that asked.
cudaError_t elapsed_time(float* milliseconds, cudaEvent_t start, cudaEvent_t end,
                         const void* caller);

}  // namespace peakbench::emulator::runtime
