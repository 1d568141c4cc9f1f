// Memory for a parameter that somebody else fills, and whether somebody did.
#pragma once

#include <ATen/core/Tensor.h>

namespace peakbench {

// As at::empty: uninitialised memory on the device, in the dtype. On the CPU each number of a
// floating dtype is a NaN of our own, so that a parameter that nobody fills makes no figures that
// differ from run to run; this takes no memory, and time once.
at::Tensor unfilled(at::IntArrayRef shape, const at::TensorOptions& options);

// True of a tensor of unfilled() on the CPU that nobody has written to. False of everything on
// other devices, of which it cannot be told without reading them, and of tensors that hold other
// NaNs. Looks at the first and the last number.
bool is_unfilled(const at::Tensor& tensor);

}  // namespace peakbench
