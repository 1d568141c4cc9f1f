// Writes tensors as a .safetensors file.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace peakbench::test {

void write_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors);

}  // namespace peakbench::test
