#include "rotary.h"

#include <ATen/ATen.h>

#include <numbers>

#include "peakbench/observer.h"

namespace peakbench::decoder {
namespace {

// number / tensor, as Python writes it: one rounding of the reciprocal, one of the product.
at::Tensor over(double number, const at::Tensor& tensor) { return tensor.reciprocal() * number; }

// Long waves are slowed down by the factor, short ones kept, those between interpolated.
at::Tensor scale_frequencies(const at::Tensor& inv_freq, const RopeConfig& rope) {
  const double longest = rope.original_positions / rope.low_frequency_factor;
  const double shortest = rope.original_positions / rope.high_frequency_factor;
  const at::Tensor wavelength = over(2 * std::numbers::pi, inv_freq);
  const at::Tensor scaled =
      at::where(wavelength > longest, inv_freq / rope.scaling_factor, inv_freq);
  const at::Tensor smooth =
      (over(rope.original_positions, wavelength) - rope.low_frequency_factor) /
      (rope.high_frequency_factor - rope.low_frequency_factor);
  const at::Tensor smoothed = at::rsub(smooth, 1) * scaled / rope.scaling_factor + smooth * scaled;
  const at::Tensor between = (wavelength >= shortest).logical_and(wavelength <= longest);
  return at::where(between, smoothed, scaled);
}

// (D / 2) float32 on the CPU.
at::Tensor inverse_frequencies(std::int64_t head_width, const RopeConfig& rope) {
  const at::Tensor exponents = at::arange(0, head_width, 2, at::kFloat) / head_width;
  const at::Tensor inv_freq = over(1, at::pow(rope.theta, exponents));
  return rope.scaling_factor == 0 ? inv_freq : scale_frequencies(inv_freq, rope);
}

// (..., D) -> (..., D): the second half negated, then the first.
at::Tensor rotate_half(const at::Tensor& x) {
  const std::int64_t half = x.size(-1) / 2;
  // Sliced in this order: backward goes through them in the opposite one.
  const at::Tensor first = x.slice(-1, 0, half), second = x.slice(-1, half);
  return at::cat({-second, first}, -1);
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(std::int64_t head_width, const RopeConfig& rope,
                                 const at::Device& device) {
  const at::NoGradGuard no_grad;
  const at::Tensor frequencies = inverse_frequencies(head_width, rope);
  inv_freq = register_buffer("inv_freq", frequencies.to(device));
  original_inv_freq = register_buffer("original_inv_freq", inv_freq.clone());
}

std::pair<at::Tensor, at::Tensor> RotaryEmbedding::forward(const at::Tensor& positions,
                                                           at::ScalarType dtype) const {
  ModuleScope scope(*this);
  const at::NoGradGuard no_grad;
  constexpr double kAttentionScaling = 1.0;  // the reference multiplies by it, one copy each
  const at::Tensor angles = positions.unsqueeze(-1).to(at::kFloat) * inv_freq;  // (1, T, D / 2)
  const at::Tensor both = at::cat({angles, angles}, -1);                        // (1, T, D)
  const at::Tensor cosine = both.cos() * kAttentionScaling;
  const at::Tensor sine = both.sin() * kAttentionScaling;
  return {cosine.to(dtype), sine.to(dtype)};
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
  const at::Tensor direct = x * cosine;
  const at::Tensor turned = rotate_half(x) * sine;
  return direct + turned;
}

}  // namespace peakbench::decoder
