#include "low_rank_adapter.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <cmath>

namespace peakbench::lora {
namespace {

class Adapters : public torch::nn::Module {};  // peft's ModuleDict of adapters by name

}  // namespace

LowRankAdapter::LowRankAdapter(const nn::Linear& base, const AdapterShape& shape,
                               at::ScalarType dtype)
    : scaling_(shape.scaling) {
  const std::int64_t out = base.weight.size(0), in = base.weight.size(1);
  const at::TensorOptions options = base.weight.options().dtype(dtype).requires_grad(false);
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

at::Tensor LowRankAdapter::forward(const nn::Linear& base, const at::Tensor& input) {
  at::Tensor result = base.base_forward(input);  // (..., out)
  const at::ScalarType dtype = result.scalar_type();
  const at::Tensor x = input.to(a_->weight.scalar_type());
  // One statement an operator: each intermediate is freed where Python frees it.
  at::Tensor update = b_->forward(a_->forward(x));  // (..., rank) -> (..., out)
  // A Python number reaches `*` as a wrapped tensor, which autograd keeps (8 bytes).
  update = at::mul(update, at::native::wrapped_scalar_tensor(scaling_));
  result = result + update;
  update.reset();
  return result.to(dtype);
}

}  // namespace peakbench::lora
