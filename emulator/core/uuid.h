// What tells one emulated card from another, the same in every process.
#pragma once

#include <string>

namespace peakbench::emulator {

// 16 bytes.
void uuid_of_card(int card, unsigned char* out);
// As NVML writes it: GPU-70656172-6b62-...
std::string uuid_text(int card);

}  // namespace peakbench::emulator
