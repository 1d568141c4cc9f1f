// Kernels that are compiled into the program: which host function stands for which, and what the
// machine code for the card says of it.
#pragma once

#include <optional>

#include "core/cubin.h"
#include "core/kernels.h"

namespace peakbench::emulator::runtime {

struct ProgramKernel {
  std::optional<KernelFacts> facts;  // nullopt where there is no machine code for the card
  KernelSettings settings;
};

ProgramKernel kernel_of(const void* host_function);
void set(const void* host_function, const KernelSettings& settings);

}  // namespace peakbench::emulator::runtime
