// The PyTorch that this process has loaded.
#pragma once

#include <string>

#include "core/api.h"

namespace peakbench::emulator {

// The path of a library that the process has loaded, by its file's name; empty where there is none.
std::string loaded_library(const char* name);
// Whether an address of code is a library's, by its file's name.
PEAKBENCH_EMULATOR_API bool lies_in(const void* code, const char* name);

}  // namespace peakbench::emulator
