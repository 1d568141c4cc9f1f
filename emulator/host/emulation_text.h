// What `peakbench emulate` prints when the program has ended: the answer, the verdict, a table, and
// then what else there is to know.
#pragma once

#include <functional>
#include <string>

#include "host/answer.h"
#include "host/emulated_program.h"

namespace peakbench::emulator {

// Of the window.
struct Look {
  bool colours = false;
  std::function<int()> width = [] { return 100; };  // columns
};

// Safe for a terminal: what the program or its processes are called cannot move the cursor.
std::string emulation_text(const EmulatedProgram& program, const Answer& answer, const Look& look);

}  // namespace peakbench::emulator
