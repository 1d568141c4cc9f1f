// A tensor's shape and dtype, as a trace names them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace peakbench::record {

std::string shape_text(const at::Tensor& tensor);  // `[1024, 4096]`
std::string dtype_text(const at::Tensor& tensor);  // `fp32`

}  // namespace peakbench::record
