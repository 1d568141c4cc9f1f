#include "layers.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include "peakbench/initialise.h"
#include "peakbench/observer.h"

namespace peakbench::decoder {

std::shared_ptr<nn::Linear> make_linear(std::int64_t in, std::int64_t out, bool bias,
                                        const at::TensorOptions& options) {
  auto linear = std::make_shared<nn::Linear>(in, out, bias, options, [](const at::Tensor& weight) {
    fill_normal(weight, kInitialDeviation);
  });
  const at::NoGradGuard no_grad;
  if (bias) linear->bias.zero_();
  return linear;
}

at::Tensor times(const at::Tensor& tensor, double number) {
  return at::mul(tensor, at::native::wrapped_scalar_tensor(number));
}

at::Tensor divided(const at::Tensor& tensor, double number) {
  return at::div(tensor, at::native::wrapped_scalar_tensor(number));
}

RmsNorm::RmsNorm(std::int64_t features, double eps, const at::TensorOptions& options) : eps_(eps) {
  weight = register_parameter("weight", at::ones({features}, options));
}

// Locals live and die as the reference's do: without gradients (or with what autograd saves packed
// away) they alone decide the peak.
at::Tensor RmsNorm::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor x = input.to(at::kFloat);
  const at::Tensor variance = x.pow(2).mean(-1, /*keepdim=*/true);  // (B, T, 1)
  {
    const at::Tensor inverse = at::rsqrt(variance + eps_);
    x = x * inverse;
  }
  return weight * x.to(input.scalar_type());
}

Mlp::Mlp(const DecoderConfig& config, const at::TensorOptions& options) {
  const auto add = [&](const char* name, std::int64_t in, std::int64_t out) {
    return register_module(name, make_linear(in, out, false, options));
  };
  gate_proj = add("gate_proj", config.width, config.mlp);
  up_proj = add("up_proj", config.width, config.mlp);
  down_proj = add("down_proj", config.mlp, config.width);
}

at::Tensor Mlp::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  at::Tensor inner;  // (B, T, mlp)
  {
    const at::Tensor activated = at::silu(gate_proj->forward(x));
    inner = activated * up_proj->forward(x);
  }
  return down_proj->forward(inner);
}

}  // namespace peakbench::decoder
