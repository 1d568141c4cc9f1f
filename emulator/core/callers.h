// Who called: the nearest function with a name outside the stand-in libraries, and PyTorch's
// operator above it.
#pragma once

namespace peakbench::emulator {

struct Caller {
  char function[240] = "";
  char library[64] = "";
  char operation[96] = "";
};

// Of the calling thread. Costs tens of microseconds; a stack seen before is answered from memory.
const Caller& find_caller();

}  // namespace peakbench::emulator
