#include "attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "peakbench/observer.h"

namespace peakbench::gpt2 {
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

}  // namespace peakbench::gpt2
