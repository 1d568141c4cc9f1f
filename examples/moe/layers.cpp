#include "layers.h"

#include <ATen/ATen.h>

#include <string>
#include <tuple>

#include "peakbench/initialise.h"
#include "peakbench/observer.h"

namespace moe {

using namespace peakbench;

namespace {

constexpr double kDeviation = 0.02, kEps = 1e-5;

std::shared_ptr<nn::Linear> linear(std::int64_t in, std::int64_t out,
                                   const at::TensorOptions& options) {
  return std::make_shared<nn::Linear>(
      in, out, /*bias=*/false, options,
      [](const at::Tensor& weight) { fill_normal(weight, kDeviation); });
}

}  // namespace

Expert::Expert(const Shape& shape, const at::TensorOptions& options) {
  up = register_module("up", linear(shape.width, shape.mlp, options));
  down = register_module("down", linear(shape.mlp, shape.width, options));
}

at::Tensor Expert::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  at::Tensor inner = up->forward(x);
  inner = at::silu(inner);
  return down->forward(inner);
}

Experts::Experts(const Shape& shape, const at::TensorOptions& options) : top_k_(shape.top_k) {
  gate = register_module("gate", linear(shape.width, shape.experts, options));
  for (std::int64_t i = 0; i < shape.experts; ++i)
    experts.push_back(register_module(std::to_string(i), std::make_shared<Expert>(shape, options)));
}

std::vector<at::Tensor> Experts::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  const at::Tensor x = input.view({-1, input.size(-1)});  // (N, C)
  const at::Tensor logits = gate->forward(x);             // (N, E)
  at::Tensor weights = at::softmax(logits, 1, at::kFloat), chosen;
  std::tie(weights, chosen) = at::topk(weights, top_k_, -1);  // (N, k)
  weights.div_(weights.sum(-1, /*keepdim=*/true));
  weights = weights.to(x.scalar_type());
  const at::Tensor mask =
      at::one_hot(chosen, static_cast<std::int64_t>(experts.size())).permute({2, 0, 1});
  const at::Tensor output = at::zeros_like(x);
  // As Python's variables, these live until the next expert's take their places. How many tokens an
  // expert has is read back from the device: the fact `decides_on_host`.
  at::Tensor token, place, some;
  for (std::size_t i = 0; i < experts.size(); ++i) {
    const auto found = at::where(mask[static_cast<std::int64_t>(i)]);
    token = found[0];
    place = found[1];
    some = at::index(x, {token});  // (n, C)
    some = experts[i]->forward(some);
    some = some * at::index(weights, {token, place}).unsqueeze(-1);
    output.index_add_(0, token, some);
  }
  return {output.view_as(input), logits};
}

Attention::Attention(const Shape& shape, const at::TensorOptions& options) : heads_(shape.heads) {
  qkv_proj = register_module("qkv_proj", linear(shape.width, 3 * shape.width, options));
  output_proj = register_module("output_proj", linear(shape.width, shape.width, options));
}

at::Tensor Attention::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
  const auto by_head = [&](const at::Tensor& t) {  // (B, T, C) -> (B, H, T, D)
    return t.view({batch, length, heads_, -1}).transpose(1, 2);
  };
  at::Tensor q, k, v;
  {
    const auto parts = qkv_proj->forward(x).split(width, 2);
    q = by_head(parts[0]);
    k = by_head(parts[1]);
    v = by_head(parts[2]);
  }
  at::Tensor y = at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
  y = y.transpose(1, 2).reshape({batch, length, width});
  return output_proj->forward(y);
}

Block::Block(const Shape& shape, const at::TensorOptions& options) {
  norm_1 = register_module("norm_1", std::make_shared<nn::LayerNorm>(shape.width, kEps, options));
  attention = register_module("attention", std::make_shared<Attention>(shape, options));
  norm_2 = register_module("norm_2", std::make_shared<nn::LayerNorm>(shape.width, kEps, options));
  experts = register_module("experts", std::make_shared<Experts>(shape, options));
}

std::vector<at::Tensor> Block::forward(Model& model, const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor y = norm_1->forward(input);
  y = model.run_part("attention",
                     [inner = attention.get()](const std::vector<at::Tensor>& in) {
                       return inner->forward(in[0]);
                     },
                     {y});
  const at::Tensor x = input + y;
  y = norm_2->forward(x);
  auto outputs = experts->forward(y);
  y = std::move(outputs[0]);
  outputs[0] = x + y;
  return outputs;
}

Decoder::Decoder(const Shape& shape, const at::TensorOptions& options) {
  embed = register_module("embed",
                          std::make_shared<nn::Embedding>(shape.vocabulary, shape.width, options));
  fill_normal(embed->weight, kDeviation);
  for (std::int64_t i = 0; i < shape.layers; ++i)
    blocks.push_back(
        register_module("block_" + std::to_string(i), std::make_shared<Block>(shape, options)));
  norm = register_module("norm", std::make_shared<nn::LayerNorm>(shape.width, kEps, options));
  lm_head = register_module("lm_head", linear(shape.width, shape.vocabulary, options));
}

}  // namespace moe
