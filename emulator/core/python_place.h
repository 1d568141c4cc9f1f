// Where a Python program is, for messages, and what it does there.
#pragma once

#include <cstddef>

namespace peakbench::emulator {

// What the line of the program does with a number that it reads, as far as its source tells.
struct PythonUse {
  // It makes an integer of it, as int(count.sum()) and range(int(x.item())) do; known from Python
  // 3.11 on.
  bool makes_integer = false;
};

// Writes "train.py:12", the innermost line outside of PyTorch, or an empty text where the calling
// thread runs no Python. Takes the interpreter's lock: call it with no lock held.
PythonUse find_python_place(char* out, std::size_t size);

}  // namespace peakbench::emulator
