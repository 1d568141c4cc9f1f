// The PyTorch of the environment that we are in, and whether a worker can load it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "pytorch/torch_in_use.h"

namespace peakbench::workers {

struct TorchFound {
  std::string python = {};            // that was asked; empty: there is none
  std::filesystem::path folder = {};  // of its package `torch`; empty: it has none
  // One that a worker can be chosen or built for.
  std::optional<pytorch::TorchInUse> torch = {};
  std::string problem = {};  // of the one in `folder`, where that cannot be
};

// What the Python of $PEAKBENCH_PYTHON, else python3 or python on PATH, would import. Starts
// Python, for 20 s at most.
TorchFound torch_of_environment();

// That Python, or the one that Peakbench was installed for. Empty: there is none. Throws
// ConfigError where a variable names a program that is not there.
std::filesystem::path python_of_environment();

// The package in this folder. Problems: it cannot be read, its LibTorch is missing, is for another
// processor or another C library, or is built for ROCm.
TorchFound torch_found_in(const std::filesystem::path& folder);

}  // namespace peakbench::workers
