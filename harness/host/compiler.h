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

// The folder of CUDA's headers: next to PyTorch, where pip installs them, or in CUDA_HOME or
// /usr/local/cuda. Throws ConfigError if they are in none of these.
std::filesystem::path cuda_headers(const std::filesystem::path& torch);

// For a shared library that includes this PyTorch's headers. Those for CUDA include CUDA's: throws
// ConfigError as cuda_headers() does.
std::vector<std::string> compiler_flags(const TorchInUse& torch);

}  // namespace peakbench::pytorch
