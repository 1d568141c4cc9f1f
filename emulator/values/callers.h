// Whose code called.
#pragma once

namespace peakbench::values {

// Whether this code lies in PyTorch's libraries of kernels. Inductor's launcher, which starts
// kernels that were compiled at run time, lies in another (libtorch_python.so).
bool is_pytorchs(const void* code);

}  // namespace peakbench::values
