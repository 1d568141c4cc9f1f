// The PyTorch that this process has loaded.
#pragma once

#include <string>

namespace peakbench::emulator {

// The path of a library that the process has loaded, by its file's name; empty where there is none.
std::string loaded_library(const char* name);

// Whether code is of PyTorch's own libraries.
bool is_pytorchs(const void* code);

}  // namespace peakbench::emulator
