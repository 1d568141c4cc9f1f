// Fat binaries: what nvcc puts the code of a source file into, for several kinds of card. NVIDIA
// does not document the format; tests compare what is read here with what ptxas says when it
// compiles.
#pragma once

#include <string>

namespace peakbench::emulator {

bool is_fat_binary(const void* image);

// The cubin that a card of this compute capability runs, unpacked. Empty where there is none, such
// as PTX alone, which the driver compiles.
std::string code_for(const void* fat_binary, int major, int minor);

}  // namespace peakbench::emulator
