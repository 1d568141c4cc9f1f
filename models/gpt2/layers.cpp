#include "layers.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <cmath>
#include <numbers>
#include <string>

#include "peakbench/errors.h"
#include "peakbench/initialise.h"
#include "peakbench/observer.h"

namespace peakbench::gpt2 {

Gpt2Config config_from(const Options& options) {
  const Gpt2Config config{.layers = options.integer("layers"),
                          .width = options.integer("width"),
                          .mlp = options.integer("mlp"),
                          .heads = options.integer("heads"),
                          .positions = options.integer("positions"),
                          .vocabulary = options.integer("vocabulary"),
                          .dropout = options.number("dropout")};
  if (config.width % config.heads != 0) {
    throw OptionError("width=" + std::to_string(config.width) +
                      " is not a multiple of heads=" + std::to_string(config.heads));
  }
  return config;
}

namespace {

// No mask is built: without padding and packing, transformers leaves causality to the operator.
// q, k, v: (B, H, T, D) -> (B, T, H, D)
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double dropout) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  const bool causal = q.size(2) > 1;
  const at::Tensor output =
      at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, dropout, causal, scale);
  return output.transpose(1, 2).contiguous();
}

}  // namespace

Attention::Attention(const Gpt2Config& config, const at::TensorOptions& options)
    : width_(config.width), head_width_(config.width / config.heads), dropout_(config.dropout) {
  c_attn = register_module("c_attn", std::make_shared<nn::Conv1d>(width_, 3 * width_, options));
  c_proj = register_module("c_proj", std::make_shared<nn::Conv1d>(width_, width_, options));
}

at::Tensor Attention::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  const std::int64_t batch = input.size(0), length = input.size(1);
  at::Tensor q, k, v;
  {
    const auto parts = c_attn->forward(input).split(width_, 2);
    const auto by_head = [&](const at::Tensor& t) {  // (B, T, C) -> (B, H, T, D)
      return t.view({batch, length, -1, head_width_}).transpose(1, 2);
    };
    // Viewed in this order: backward goes through them in the opposite one.
    k = by_head(parts[1]);
    v = by_head(parts[2]);
    q = by_head(parts[0]);
  }
  at::Tensor output = attend(q, k, v, dropout_);
  output = output.reshape({batch, length, -1}).contiguous();
  output = c_proj->forward(output);
  return at::dropout(output, dropout_, /*train=*/true);
}

namespace {

// tensor * number as Python runs it: the number becomes a tensor, which autograd keeps.
at::Tensor times(const at::Tensor& tensor, double number) {
  return at::mul(tensor, at::native::wrapped_scalar_tensor(number));
}

// "gelu_new": operator by operator, as transformers writes it. One statement an operator: each
// intermediate is freed where Python frees it.
at::Tensor new_gelu(const at::Tensor& x) {
  const at::Tensor half = times(x, 0.5);
  at::Tensor y = times(at::pow(x, 3.0), 0.044715);
  y = x + y;
  y = times(y, std::sqrt(2.0 / std::numbers::pi));
  y = at::tanh(y);
  y = y + 1.0;
  return half * y;
}

}  // namespace

Mlp::Mlp(const Gpt2Config& config, const at::TensorOptions& options) : dropout_(config.dropout) {
  c_fc = register_module("c_fc", std::make_shared<nn::Conv1d>(config.width, config.mlp, options));
  c_proj =
      register_module("c_proj", std::make_shared<nn::Conv1d>(config.mlp, config.width, options));
}

at::Tensor Mlp::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor x = c_fc->forward(input);  // (B, T, mlp)
  x = new_gelu(x);
  x = c_proj->forward(x);
  return at::dropout(x, dropout_, /*train=*/true);
}

Block::Block(const Gpt2Config& config, const at::TensorOptions& options) {
  const auto make_norm = [&] {
    return std::make_shared<nn::LayerNorm>(config.width, kLayerNormEps, options);
  };
  ln_1 = register_module("ln_1", make_norm());
  attn = register_module("attn", std::make_shared<Attention>(config, options));
  ln_2 = register_module("ln_2", make_norm());
  mlp = register_module("mlp", std::make_shared<Mlp>(config, options));

  fill_normal(attn->c_attn->weight, kInitialDeviation);
  fill_normal(mlp->c_fc->weight, kInitialDeviation);
  // Both ways into the residual, less the more of them there are: GPT-2's paper, section 2.3.
  const double into_residual =
      kInitialDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));
  fill_normal(attn->c_proj->weight, into_residual);
  fill_normal(mlp->c_proj->weight, into_residual);
}

// Locals live as long as the reference's: attention's output until the block is through.
at::Tensor Block::forward(Model& model, const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor x = ln_1->forward(input);
  const at::Tensor attended =
      model.run_part("attention",
                     [attention = attn.get()](const std::vector<at::Tensor>& in) {
                       return attention->forward(in[0]);
                     },
                     {x});
  x = attended + input;

  const at::Tensor residual = x;
  x = ln_2->forward(x);
  const at::Tensor inner = model.run_part(
      "mlp", [of = mlp.get()](const std::vector<at::Tensor>& in) { return of->forward(in[0]); },
      {x});
  return residual + inner;
}

}  // namespace peakbench::gpt2
