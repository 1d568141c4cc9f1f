#pragma once

#include <cstddef>

namespace peakbench::emulator {

// The caller: the nearest named function outside the stub libraries, and PyTorch's operator above
// it.

struct Caller {
  char function[240] = "";
  char library[64] = "";
  char operation[96] = "";
};

// Of the calling thread. Costs tens of microseconds; a stack seen before is answered from memory.
const Caller& find_caller();

// Where a Python program is, for messages, and what it does there.

// What the program does with a number that it reads, as far as its source tells; known from Python
// 3.11 on.
struct PythonUse {
  bool makes_integer = false;  // int(count.sum()), range(int(x.item()))
  // The program only makes texts and other such numbers of it: no branch, size or index, and no
  // argument of code outside this file.
  bool only_logged = false;
  bool only_printed = false;  // and no logger or meter has it, which may be any code
};

// Writes "train.py:12", the innermost line outside of PyTorch. Writes an empty text if the calling
// thread runs no Python. `use`, if given: how that line uses the value that it reads. Takes the
// interpreter's lock: call it with no lock held.
void find_python_place(char* out, std::size_t size, PythonUse* use = nullptr);

}  // namespace peakbench::emulator
