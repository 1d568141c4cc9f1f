// What a user can do about a function that the emulated card refuses.
#pragma once

#include <string_view>

namespace peakbench::emulator {

// A sentence; empty where nothing is known.
std::string_view way_round(std::string_view function);

}  // namespace peakbench::emulator
