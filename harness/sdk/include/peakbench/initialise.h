// Random initialisation on the device that the tensor is on.
#pragma once

#include <ATen/core/Tensor.h>

namespace peakbench {

// Fills a contiguous tensor from a normal distribution around zero. Reproducible under a seed of
// the default generator, whatever the number of threads.
void fill_normal(const at::Tensor& tensor, double deviation);

}  // namespace peakbench
