// The library that computes values (emulator/values), for the PyTorch of a program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "host/installation.h"
#include "host/torch_in_use.h"

namespace peakbench::emulator {

struct ValuesLibrary {
  std::filesystem::path path;
  std::string torch_version;  // that it is compiled against
  std::string problem;        // why there is none for the program's PyTorch; empty where there is
};

// The one of this build where the program's PyTorch has its version, or is not known. For another
// version it is compiled from the sources in the installation, against that PyTorch's headers, by
// the machine's compiler; and kept in the user's cache folder ($XDG_CACHE_HOME/peakbench, else
// ~/.cache/peakbench) under the version and what it was made of. Says so on stderr, as it takes its
// time.
ValuesLibrary values_library_for(const std::optional<TorchInUse>& torch,
                                 const Installation& installation);

}  // namespace peakbench::emulator
