#pragma once

#include <cstddef>
#include <string>

namespace peakbench::interpreter {

// The Python functions that the calling thread is in.

struct PythonFrame {
  void* code;  // borrowed: for as long as the function runs
  int at;      // the instruction, from 3.11 on; before, the line

  bool operator==(const PythonFrame&) const = default;
};

// The innermost first, `most` of them; the caller holds Python's lock.
//
// From 3.11 on Python makes a frame object only on request. An additional object makes its garbage
// collector run earlier, which changes the program's memory. So frames are read from the
// interpreter's own structures (3.11 to 3.14; Include/internal/pycore_frame.h, cpython/pystate.h).
// They are compared with a frame object once, and only used if both agree.
std::size_t python_frames(PythonFrame* out, std::size_t most);

int line_of(const PythonFrame& frame);

// Cells of a notebook: IPython runs each under the name of a file that is not there.

// "<ipython-input-3>" for the cell that the notebook shows as In[3], whatever its file is called.
// Empty if `file`, a str, is no cell. IPython keeps the number of each name
// (IPython/core/compilerop.py, CachingCompiler.cache). Runs no Python code, so it may be called
// within an allocator's lock; the caller holds Python's lock.
std::string cell_of(void* file);

}  // namespace peakbench::interpreter
