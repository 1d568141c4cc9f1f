// The Python functions that the calling thread is in.
#pragma once

#include <cstddef>

namespace peakbench::interpreter {

struct PythonFrame {
  void* code;  // borrowed: for as long as the function runs
  int at;      // the instruction, from 3.11 on; before, the line

  bool operator==(const PythonFrame&) const = default;
};

// The innermost first, `most` of them; the caller holds Python's lock.
//
// From 3.11 on Python makes a frame object only for who asks, and an object more makes its garbage
// collector run earlier, which moves the program's memory. So frames are read where the interpreter
// keeps them (3.11 to 3.14; Include/internal/pycore_frame.h, cpython/pystate.h), if what is read so
// is what the frame object says when it is compared once.
std::size_t python_frames(PythonFrame* out, std::size_t most);

int line_of(const PythonFrame& frame);

}  // namespace peakbench::interpreter
