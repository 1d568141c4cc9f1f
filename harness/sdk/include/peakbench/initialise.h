// Random initialisation of a tensor, on the device of the tensor.
#pragma once

#include <ATen/core/Tensor.h>

namespace peakbench {

// Fills a contiguous tensor of a floating dtype from a normal distribution around zero with this
// standard deviation. For a given seed of the default generator the values are the same, whatever
// the number of threads.
void fill_normal(const at::Tensor& tensor, double deviation);

}  // namespace peakbench
