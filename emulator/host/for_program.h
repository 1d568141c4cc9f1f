// The stand-ins that a program needs: those which its PyTorch loads, where it can work with them.
#pragma once

#include <optional>
#include <string>

#include "host/installation.h"
#include "pytorch/torch_in_use.h"

namespace peakbench::emulator {

// The installation as a program with that PyTorch meets it: the libraries under the names of its
// CUDA, the cards that it has code for, the versions that its libraries answer. Where no PyTorch
// was found, there are the libraries of every CUDA: which are used, the program decides by what it
// loads.
Installation for_program(const Installation& installation,
                         const std::optional<pytorch::TorchInUse>& torch);

// Why this PyTorch cannot work on the emulated card, and what would; nullopt when it can.
std::optional<std::string> why_torch_cannot_work(const pytorch::TorchInUse& torch,
                                                 const Installation& installation);

}  // namespace peakbench::emulator
