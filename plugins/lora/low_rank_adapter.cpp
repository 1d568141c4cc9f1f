#include "low_rank_adapter.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <cmath>

namespace peakbench::lora {

LowRankAdapter::LowRankAdapter(const nn::LinearLayer& base, const AdapterShape& shape,
                               at::ScalarType dtype)
    : scaling_(shape.scaling), dropout_(shape.dropout) {
  const std::int64_t out = base.out_features(), in = base.in_features();
  const at::TensorOptions options = base.options().dtype(dtype);
  const auto add = [&](const std::string& name, std::int64_t from, std::int64_t to) {
    const auto adapters = register_module(name, std::make_shared<Adapters>());
    return adapters->register_module("default",
                                     std::make_shared<nn::Linear>(from, to, false, options));
  };
  a_ = add("lora_A", in, shape.rank);
  b_ = add("lora_B", shape.rank, out);

  at::NoGradGuard no_grad;
  const double bound = 1.0 / std::sqrt(static_cast<double>(in));  // kaiming_uniform_(a=sqrt(5))
  a_->weight.uniform_(-bound, bound);
  b_->weight.zero_();
}

at::Tensor LowRankAdapter::forward(const nn::LinearLayer& base, const at::Tensor& input) {
  at::Tensor result = base.base_forward(input);  // (..., out)
  const at::ScalarType result_dtype = result.scalar_type();
  const at::Tensor x = input.to(dtype());
  result = add_to(result, base, x);
  return result.to(result_dtype);
}

// One statement an operator: each intermediate is freed where Python frees it.
at::Tensor LowRankAdapter::add_to(const at::Tensor& result, const nn::LinearLayer&,
                                  const at::Tensor& x) {
  at::Tensor update = low_rank(dropout_ > 0 ? at::dropout(x, dropout_, /*train=*/true) : x);
  update = at::mul(update, scaling());
  return result + update;
}

at::Tensor LowRankAdapter::low_rank(const at::Tensor& x) const {
  return b_->forward(a_->forward(x));
}

at::Tensor LowRankAdapter::scaling() const { return at::native::wrapped_scalar_tensor(scaling_); }

}  // namespace peakbench::lora
