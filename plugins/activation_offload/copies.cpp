#include "copies.h"

#include <ATen/ATen.h>

namespace peakbench::activation_offload {
namespace {

class OnHost : public SavedTensor {
 public:
  OnHost(at::Tensor host, at::Device device, bool pinned)
      : host_(std::move(host)), device_(device), pinned_(pinned) {}

  at::Tensor unpack() override {
    return host_.to(host_.options().device(device_), /*non_blocking=*/pinned_);
  }

 private:
  at::Tensor host_;
  at::Device device_;
  bool pinned_;
};

at::TensorOptions on_host(const at::Tensor& tensor, bool pin_memory) {
  const bool pinned = pin_memory && !tensor.is_cpu();
  return at::TensorOptions(tensor.dtype()).device(at::kCPU).pinned_memory(pinned);
}

}  // namespace

bool Choice::takes(const at::Tensor& tensor, bool is_weight) const {
  return !is_weight && static_cast<std::int64_t>(tensor.nbytes()) >= min_bytes;
}

at::Tensor host_memory_like(const at::Tensor& tensor, bool pin_memory) {
  return at::empty_like(tensor, on_host(tensor, pin_memory));
}

std::shared_ptr<SavedTensor> Copies::pack(const at::Tensor& tensor, const SavedTensorFacts& facts) {
  if (!choice_.takes(tensor, facts.is_weight)) return nullptr;
  at::Tensor host = host_memory_like(tensor, choice_.pin_memory);
  host.copy_(tensor);
  return std::make_shared<OnHost>(std::move(host), tensor.device(), choice_.pin_memory);
}

std::shared_ptr<SavedTensor> SaveOnCpu::pack(const at::Tensor& tensor, const SavedTensorFacts&) {
  at::Tensor host = at::empty(tensor.sizes(), on_host(tensor, pin_memory_));
  host.copy_(tensor);
  return std::make_shared<OnHost>(std::move(host), tensor.device(), pin_memory_);
}

}  // namespace peakbench::activation_offload
