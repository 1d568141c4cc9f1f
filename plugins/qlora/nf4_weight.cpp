#include "nf4_weight.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace peakbench::qlora {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The whole weight, (out, in), in the dtype of what it is multiplied with.
at::Tensor whole(const Nf4& nf4, std::int64_t out, std::int64_t in, at::ScalarType dtype) {
  return dequantise(nf4, {out, in}).to(dtype);
}

class LinearNf4 : public torch::autograd::Function<LinearNf4> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Nf4& nf4,
                            std::int64_t out, std::int64_t in) {
    context->save_for_backward({nf4.data, nf4.scales, nf4.factors, nf4.mean, nf4.codebook});
    context->saved_data["out"] = out;
    context->saved_data["in"] = in;
    return at::linear(x, whole(nf4, out, in, x.scalar_type()));
  }

  // The weight is frozen: only x has a gradient.
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor& gradient = gradients[0];  // (..., out)
    const variable_list saved = context->get_saved_variables();
    const Nf4 nf4{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const at::Tensor weight = whole(nf4, context->saved_data["out"].toInt(),
                                    context->saved_data["in"].toInt(), gradient.scalar_type());
    return {at::matmul(gradient, weight), {}, {}, {}};
  }
};

}  // namespace

Nf4Weight::Nf4Weight(const nn::LinearLayer& layer, bool double_quantisation)
    : nf4_(quantise(layer.dense_weight(), double_quantisation)),
      out_(layer.out_features()),
      in_(layer.in_features()) {
  register_buffer("quantized_data", nf4_.data);
  register_buffer("quantized_scalers", nf4_.scales);
  if (double_quantisation) {
    register_buffer("quantization_factor", nf4_.factors);
    register_buffer("scaler_mean", nf4_.mean);
  }
  register_buffer("nf4", nf4_.codebook);
}

at::Tensor Nf4Weight::linear(const at::Tensor& x, const at::Tensor& bias) {
  const at::Tensor product = LinearNf4::apply(x, nf4_, out_, in_);
  return bias.defined() ? product + bias : product;
}

at::Tensor Nf4Weight::dense() {
  at::NoGradGuard no_grad;
  return dequantise(nf4_, {out_, in_});
}

}  // namespace peakbench::qlora
