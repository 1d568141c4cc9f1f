// The library that computes values (emulator/values), for the PyTorch of a program.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "host/installation.h"
#include "pytorch/torch_in_use.h"

namespace peakbench::emulator {

struct ValuesLibrary {
  std::filesystem::path path;
  std::string torch_version;  // that it is compiled against
  std::string problem;        // why there is none for the program's PyTorch; empty where there is
};

// The one of this build where the program's PyTorch has its version, or is not known; for another
// version that of a worker that is carried along. Otherwise it is compiled from the sources in the
// installation: see pytorch/compiled_library.h.
ValuesLibrary values_library_for(const std::optional<pytorch::TorchInUse>& torch,
                                 const Installation& installation,
                                 const std::function<bool()>& cancelled);

}  // namespace peakbench::emulator
