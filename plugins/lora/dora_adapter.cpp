#include "dora_adapter.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

namespace peakbench::lora {
namespace {

at::Tensor row_norm(const at::Tensor& matrix) {
  return at::linalg_norm(matrix, /*ord=*/std::nullopt, /*dim=*/at::IntArrayRef{1});
}

}  // namespace

DoraAdapter::DoraAdapter(const nn::LinearLayer& base, const AdapterShape& shape,
                         at::ScalarType dtype)
    : LowRankAdapter(base, shape, dtype) {
  const auto magnitudes = register_module("lora_magnitude_vector", std::make_shared<Adapters>());
  const auto magnitude = magnitudes->register_module("default", std::make_shared<Adapters>());
  at::NoGradGuard no_grad;
  magnitude_ = magnitude->register_parameter("weight", row_norm(base.dense_weight()).to(dtype));
}

at::Tensor DoraAdapter::weight_norm(const at::Tensor& weight, const at::Tensor& update) const {
  at::Tensor sum = at::mul(update, scaling());  // (out, in)
  sum = weight + sum;
  return row_norm(sum);
}

at::Tensor DoraAdapter::add_to(const at::Tensor& result, const nn::LinearLayer& base,
                               const at::Tensor& x) {
  // Named as in peft and alive until the end, as there.
  at::Tensor lora_weight = low_rank(at::eye(base.in_features(), base.options().dtype(dtype()))).t();
  lora_weight = lora_weight.to(x.scalar_type());  // (out, in)
  const at::Tensor weight = base.dense_weight().to(x.scalar_type());
  const at::Tensor norm = weight_norm(weight, lora_weight.detach()).detach();
  const at::Tensor scale = (magnitude_ / norm).view({1, -1});

  const at::Tensor lora_result = low_rank(x);  // (..., out)
  const at::Tensor base_result = base.bias.defined() ? result - base.bias : result;
  at::Tensor turned = at::sub(scale, at::native::wrapped_scalar_tensor(at::Scalar(1)));
  turned = turned * base_result;
  at::Tensor update = scale * lora_result;
  update = at::mul(update, scaling());
  turned = turned + update;
  update.reset();
  return result + turned;
}

}  // namespace peakbench::lora
