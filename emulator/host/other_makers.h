// Cards that are no CUDA cards, told by their names.
#pragma once

#include <string>
#include <string_view>

namespace peakbench::emulator {

// "is one of AMD's, which run PyTorch's ROCm build", for mi300x and its like; empty for a name that
// is nobody's. Case, dashes and spaces do not matter.
std::string other_maker(std::string_view name);

}  // namespace peakbench::emulator
