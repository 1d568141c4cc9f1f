// What a library for an installed PyTorch is compiled with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "host/torch_in_use.h"

namespace peakbench::pytorch {

// The words of $CXX, the first of them as a path ("ccache g++"), else c++, else g++. Throws
// ConfigError if there is no compiler.
std::vector<std::string> find_compiler();

// Whether a command like that can be run: its program is there.
bool is_command(const std::string& text);

// "0" or "1": _GLIBCXX_USE_CXX11_ABI of this PyTorch. Wheels before 2.7 may have the old one.
std::string cxx_abi(const std::filesystem::path& torch);

// pip installs CUDA's headers beside PyTorch. Throws ConfigError where they are neither there, nor
// in CUDA_HOME or /usr/local/cuda.
std::filesystem::path cuda_headers(const std::filesystem::path& torch);

// For a shared library that includes this PyTorch's headers. PyTorch's headers for CUDA include
// CUDA's: throws ConfigError where these are not beside it, in CUDA_HOME or in /usr/local/cuda.
std::vector<std::string> compiler_flags(const TorchInUse& torch);

}  // namespace peakbench::pytorch
