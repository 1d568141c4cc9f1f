#include "attention.h"

#include <ATen/ATen.h>

#include "peakbench/observer.h"

namespace peakbench::vit {

SelfAttention::SelfAttention(std::int64_t width, std::int64_t heads,
                             const at::TensorOptions& options)
    : width_(width), heads_(heads) {
  in_proj_weight = register_parameter("in_proj_weight", at::empty({3 * width, width}, options));
  in_proj_bias = register_parameter("in_proj_bias", at::zeros({3 * width}, options));
  out_proj = register_module("out_proj", std::make_shared<nn::Linear>(width, width, true, options));
}

namespace {

// q, k and v from one product, made contiguous together. x: (T, B, C) -> (3, T, B, C)
at::Tensor packed_projection(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias) {
  const std::int64_t width = x.size(-1);
  at::Tensor projection = at::linear(x, weight, bias);  // (T, B, 3 C)
  projection =
      projection.unflatten(-1, {3, width}).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous();
  return projection;
}

}  // namespace

at::Tensor SelfAttention::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  const at::Tensor x = input.transpose(1, 0);  // (T, B, C)
  const std::int64_t length = x.size(0), batch = x.size(1), head = width_ / heads_;

  at::Tensor q, k, v;
  {
    const at::Tensor packed = packed_projection(x, in_proj_weight, in_proj_bias);
    q = packed[0];
    k = packed[1];
    v = packed[2];
  }
  const auto by_head = [&](const at::Tensor& t) {
    return t.view({length, batch * heads_, head})
        .transpose(0, 1)
        .view({batch, heads_, length, head});
  };
  q = by_head(q);
  k = by_head(k);
  v = by_head(v);
  at::Tensor output = at::scaled_dot_product_attention(q, k, v);  // (B, H, T, C / H)
  output = output.permute({2, 0, 1, 3}).contiguous().view({batch * length, width_});
  // The projection runs as a function of its weight, not through the submodule, as in torch.
  output = at::linear(output, out_proj->weight, out_proj->bias);
  return output.view({length, batch, output.size(1)}).transpose(1, 0);
}

}  // namespace peakbench::vit
