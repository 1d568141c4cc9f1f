// What a Python program is doing: where it is, for messages, and whether it is at its end.
#pragma once

#include <cstddef>

namespace peakbench::emulator {

// Writes "train.py:12", the innermost line outside of PyTorch, or an empty text where the calling
// thread runs no Python. Takes the interpreter's lock: call it with no lock held.
void find_python_place(char* out, std::size_t size);

// Whether the calling thread has the interpreter's lock already.
bool holds_python();

// Whether the process's interpreter is being taken down; false where there is none.
bool python_is_ending();

}  // namespace peakbench::emulator
