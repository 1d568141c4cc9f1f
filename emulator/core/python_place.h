// Where a Python program is: for messages about what it did.
#pragma once

#include <cstddef>

namespace peakbench::emulator {

// Writes "train.py:12", the innermost line outside of PyTorch, or an empty text where the calling
// thread runs no Python. Takes the interpreter's lock: call it with no lock held.
void find_python_place(char* out, std::size_t size);

}  // namespace peakbench::emulator
