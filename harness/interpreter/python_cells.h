// Cells of a notebook: IPython runs each under the name of a file that is not there.
#pragma once

#include <string>

namespace peakbench::interpreter {

// "<ipython-input-3>" for the cell that the notebook shows as In[3], whatever its file is called;
// empty: `file`, a str, is none. IPython keeps the number of each name
// (IPython/core/compilerop.py, CachingCompiler.cache). Runs no code of Python's, so that it may be
// called within an allocator's lock; the caller holds Python's lock.
std::string cell_of(void* file);

}  // namespace peakbench::interpreter
