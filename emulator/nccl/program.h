// The other processes of the program that this one belongs to.
#pragma once

namespace peakbench::emulator::nccl {

// Whether any other process was started under the same `peakbench emulate`: it may become a rank.
bool others_in_program();

}  // namespace peakbench::emulator::nccl
