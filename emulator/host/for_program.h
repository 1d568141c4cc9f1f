// The stand-ins that a program needs: those which its PyTorch loads.
#pragma once

#include <optional>

#include "host/installation.h"
#include "host/torch_in_use.h"

namespace peakbench::emulator {

// The installation as a program with that PyTorch meets it: the libraries under the names of its
// CUDA, the cards that it has code for, the versions that its libraries answer. Where no PyTorch
// was found, there are the libraries of every CUDA: which are used, the program decides by what it
// loads.
Installation for_program(const Installation& installation, const std::optional<TorchInUse>& torch);

}  // namespace peakbench::emulator
