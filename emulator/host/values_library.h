// The library that computes values (emulator/values), for the PyTorch of a program.
#pragma once

#include <functional>
#include <optional>

#include "host/installation.h"
#include "pytorch/library_in_use.h"

namespace peakbench::emulator {

// May compile it, from the sources in the installation: see pytorch/library_in_use.h.
pytorch::LibraryInUse values_library_for(const std::optional<pytorch::TorchInUse>& torch,
                                         const Installation& installation,
                                         const std::function<bool()>& cancelled);

}  // namespace peakbench::emulator
