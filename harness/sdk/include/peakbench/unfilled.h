// Memory for a parameter that other code fills, and a check whether that code has filled it.
#pragma once

#include <ATen/core/Tensor.h>

namespace peakbench {

// Returns uninitialised memory of this shape, as at::empty does, on the device and in the dtype of
// `options`. On the CPU, each number of a floating dtype is a NaN that marks it as unfilled. Thus
// the results of a parameter that no code fills do not differ from run to run. Marking takes time
// once, and no additional memory.
at::Tensor unfilled(at::IntArrayRef shape, const at::TensorOptions& options);

// Returns whether a tensor on the CPU comes from unfilled() and no code has written to it. The
// function compares the first and the last number with the mark. It returns false for:
// - tensors on other devices, because the check would have to read them;
// - tensors that hold other NaNs;
// - empty tensors, and tensors that are not contiguous.
bool is_unfilled(const at::Tensor& tensor);

}  // namespace peakbench
