// What compiling a worker needs of the machine.
#pragma once

#include <filesystem>
#include <string>

#include "pytorch/torch_in_use.h"

namespace peakbench::workers {

struct BuildTools {
  std::filesystem::path cmake;
  std::string generator;         // "Ninja", "Unix Makefiles"
  std::filesystem::path beside;  // where ninja is, for CMake; empty: on PATH
};

// Looks on PATH, and beside `python` (pip installs CMake and Ninja there). Throws ConfigError with
// a sentence for each thing that is missing (the sources, a C++ compiler, CMake 3.25, Ninja or
// make, CUDA's headers, disk), and what to do.
BuildTools find_build_tools(const pytorch::TorchInUse& torch, const std::filesystem::path& sources,
                            const std::string& python, const std::filesystem::path& cache);

}  // namespace peakbench::workers
