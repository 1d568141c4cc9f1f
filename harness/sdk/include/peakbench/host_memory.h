// Host memory for data that a strategy keeps outside the device.
#pragma once

#include <ATen/core/Tensor.h>

namespace peakbench {

// Returns an uninitialised host tensor with the shape, strides and dtype of `tensor`.
// - If `tensor` is on a GPU, the memory is page-locked, so that copies between the two are direct.
// - If `tensor` is on the CPU, the memory is ordinary. Host and device are the same there, and a
//   copy only imitates the transfer.
at::Tensor empty_on_host(const at::Tensor& tensor);

// Returns a copy of `tensor` in such memory, never the tensor itself. The function returns after
// the values have arrived, so the CPU can read them without synchronising a stream.
at::Tensor copy_on_host(const at::Tensor& tensor);

}  // namespace peakbench
