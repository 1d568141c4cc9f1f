#include "peakbench/host_memory.h"

#include <ATen/ATen.h>

namespace peakbench {

at::Tensor empty_on_host(const at::Tensor& tensor) {
  return at::empty_like(tensor, at::TensorOptions(at::kCPU).pinned_memory(!tensor.is_cpu()));
}

at::Tensor copy_on_host(const at::Tensor& tensor) {
  at::Tensor host = empty_on_host(tensor.detach());
  return host.copy_(tensor.detach());
}

}  // namespace peakbench
