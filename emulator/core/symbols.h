// Finds the functions of many code addresses at once. dladdr would search all symbols of a library
// for each: half a millisecond in LibTorch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/api.h"

namespace peakbench::emulator {

struct LibrarySymbols {
  std::string path;  // empty if the address is in no library
  // By address, for addresses in the library. Names as the linker spells them; empty if no exported
  // function covers an address.
  std::map<const void*, std::string> functions;
};

// For the library that contains `address`, which must not be closed meanwhile.
LibrarySymbols symbols_at(const void* address, const std::vector<const void*>& addresses);

// Whether an address of code is a library's, by its file's name.
PEAKBENCH_EMULATOR_API bool lies_in(const void* code, const char* name);

}  // namespace peakbench::emulator
