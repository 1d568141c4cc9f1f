#include "encoder.h"

#include <ATen/ATen.h>

#include <cmath>

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

namespace {

constexpr double kLayerNormEps = 1e-6;  // torchvision's, not torch.nn's default

// torch.nn.init.xavier_uniform_ for a (out, in) matrix.
void xavier_uniform(at::Tensor& weight) {
  const double bound = std::sqrt(6.0 / static_cast<double>(weight.size(0) + weight.size(1)));
  at::NoGradGuard no_grad;
  weight.uniform_(-bound, bound);
}

}  // namespace

MlpBlock::MlpBlock(std::int64_t width, std::int64_t inner, const at::TensorOptions& options) {
  first = register_module("0", std::make_shared<nn::Linear>(width, inner, true, options));
  second = register_module("3", std::make_shared<nn::Linear>(inner, width, true, options));
  at::NoGradGuard no_grad;
  for (const auto& linear : {first, second}) {
    xavier_uniform(linear->weight);
    linear->bias.normal_(0, 1e-6);
  }
}

at::Tensor MlpBlock::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor x = first->forward(input);  // (B, T, inner)
  x = at::gelu(x);
  x = at::dropout(x, 0.0, true);
  x = second->forward(x);  // (B, T, C)
  return at::dropout(x, 0.0, true);
}

EncoderBlock::EncoderBlock(const EncoderShape& shape, const at::TensorOptions& options) {
  ln_1 =
      register_module("ln_1", std::make_shared<nn::LayerNorm>(shape.width, kLayerNormEps, options));
  self_attention = register_module(
      "self_attention", std::make_shared<SelfAttention>(shape.width, shape.heads, options));
  ln_2 =
      register_module("ln_2", std::make_shared<nn::LayerNorm>(shape.width, kLayerNormEps, options));
  mlp = register_module("mlp", std::make_shared<MlpBlock>(shape.width, shape.mlp, options));
  at::NoGradGuard no_grad;
  xavier_uniform(self_attention->in_proj_weight);
  const double bound =
      1.0 / std::sqrt(static_cast<double>(shape.width));  // nn.Linear's kaiming_uniform(a=sqrt(5))
  self_attention->out_proj->weight.uniform_(-bound, bound);
  self_attention->out_proj->bias.zero_();
}

at::Tensor EncoderBlock::forward(Model& model, const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor x = ln_1->forward(input);
  x = model.run_part("attention",
                     [attention = self_attention.get()](const std::vector<at::Tensor>& in) {
                       return attention->forward(in[0]);
                     },
                     {x});
  x = at::dropout(x, 0.0, true);
  x = x + input;

  at::Tensor y = ln_2->forward(x);
  y = model.run_part(
      "mlp",
      [inner = mlp.get()](const std::vector<at::Tensor>& in) { return inner->forward(in[0]); },
      {y});
  return x + y;
}

namespace {

// nn.Sequential without a forward of its own: the encoder runs the blocks.
class Layers : public torch::nn::Module {};

}  // namespace

Encoder::Encoder(const EncoderShape& shape, const at::TensorOptions& options) {
  pos_embedding =
      register_parameter("pos_embedding", at::empty({1, shape.tokens, shape.width}, options));
  auto layers = register_module("layers", std::make_shared<Layers>());
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    blocks.push_back(layers->register_module("encoder_layer_" + std::to_string(i),
                                             std::make_shared<EncoderBlock>(shape, options)));
  }
  ln = register_module("ln", std::make_shared<nn::LayerNorm>(shape.width, kLayerNormEps, options));
  at::NoGradGuard no_grad;
  pos_embedding.normal_(0, 0.02);
}

}  // namespace peakbench::vit
