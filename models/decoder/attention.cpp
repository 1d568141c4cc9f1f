#include "attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "layers.h"
#include "peakbench/observer.h"
#include "rotary.h"

namespace peakbench::decoder {
namespace {

// No mask is built: without padding and packing, transformers leaves causality and the grouping of
// heads to the operator. q: (B, H, T, D), k, v: (B, K, T, D) -> (B, T, H, D)
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool grouped,
                  double scale) {
  const bool causal = q.size(2) > 1;
  at::Tensor output = at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                       causal, scale, /*enable_gqa=*/grouped);
  return output.transpose(1, 2).contiguous();
}

double scale_of(const DecoderConfig& config) {
  return config.scales ? config.scales->attention
                       : 1.0 / std::sqrt(static_cast<double>(config.head_width()));
}

}  // namespace

Attention::Attention(const DecoderConfig& config, const at::TensorOptions& options)
    : head_width_(config.head_width()), grouped_(config.grouped()), scale_(scale_of(config)) {
  const std::int64_t queries = config.heads * head_width_, keys = config.kv_heads * head_width_;
  const auto add = [&](const char* name, std::int64_t in, std::int64_t out, bool bias) {
    return register_module(name, make_linear(in, out, bias, options));
  };
  q_proj = add("q_proj", config.width, queries, config.attention_bias);
  k_proj = add("k_proj", config.width, keys, config.attention_bias);
  v_proj = add("v_proj", config.width, keys, config.attention_bias);
  o_proj = add("o_proj", queries, config.width, false);
}

at::Tensor Attention::forward(const at::Tensor& input, const at::Tensor& cosine,
                              const at::Tensor& sine) const {
  ModuleScope scope(*this);
  const std::int64_t batch = input.size(0), length = input.size(1);
  const auto by_head = [&](const at::Tensor& t) {  // (B, T, n D) -> (B, n, T, D)
    return t.view({batch, length, -1, head_width_}).transpose(1, 2);
  };
  at::Tensor q = by_head(q_proj->forward(input));
  at::Tensor k = by_head(k_proj->forward(input));
  const at::Tensor v = by_head(v_proj->forward(input));
  {
    // Both exist before either of the unrotated is released.
    const at::Tensor wide_cosine = cosine.unsqueeze(1), wide_sine = sine.unsqueeze(1);
    at::Tensor rotated_q = rotate(q, wide_cosine, wide_sine);
    at::Tensor rotated_k = rotate(k, wide_cosine, wide_sine);
    q = std::move(rotated_q);
    k = std::move(rotated_k);
  }
  at::Tensor output = attend(q, k, v, grouped_, scale_);
  output = output.reshape({batch, length, -1}).contiguous();
  return o_proj->forward(output);
}

}  // namespace peakbench::decoder
