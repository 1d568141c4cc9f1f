#include "recording/flop_formulas.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <numeric>
#include <unordered_map>

namespace peakbench::recording {
namespace {

using Shape = c10::ArrayRef<std::int64_t>;
using Count = std::optional<std::int64_t>;

std::int64_t product(Shape sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// Empty where the argument is no tensor that has a shape.
Shape shape_of(c10::ArrayRef<c10::IValue> inputs, std::size_t at) {
  if (at >= inputs.size() || !inputs[at].isTensor()) return {};
  const at::Tensor& tensor = inputs[at].toTensor();
  return tensor.defined() ? tensor.sizes() : Shape{};
}

Count of_matrices(Shape a, Shape b) {
  if (a.size() != 2 || b.size() != 2) return std::nullopt;
  return a[0] * b[1] * 2 * a[1];
}

Count of_batches(Shape a, Shape b) {
  if (a.size() != 3 || b.size() != 3) return std::nullopt;
  return a[0] * a[1] * b[2] * 2 * a[2];
}

// So many places with the whole filter, which is (out, in, ...).
std::int64_t of_filter(std::int64_t batch, Shape filter, std::int64_t places) {
  return places * product(filter.slice(2)) * batch * filter[0] * filter[1] * 2;
}

bool is_transposed(c10::ArrayRef<c10::IValue> inputs, std::size_t at) {
  return at < inputs.size() && inputs[at].isBool() && inputs[at].toBool();
}

std::optional<Flops> of_convolution(c10::ArrayRef<c10::IValue> inputs) {
  constexpr std::size_t kTransposed = 6;
  const Shape input = shape_of(inputs, 0), filter = shape_of(inputs, 1);
  if (input.size() < 3 || filter.size() != input.size()) return std::nullopt;
  if (is_transposed(inputs, kTransposed))
    return Flops{of_filter(input[0], filter, places_of(input))};
  return Flops{of_filter(input[0], filter, 1), true};
}

Count of_convolution_backward(c10::ArrayRef<c10::IValue> inputs) {
  constexpr std::size_t kTransposed = 7, kMask = 10;
  const Shape gradient = shape_of(inputs, 0), input = shape_of(inputs, 1);
  const Shape filter = shape_of(inputs, 2);
  if (input.size() < 3 || filter.size() != input.size() || gradient.size() != input.size() ||
      inputs.size() <= kMask || !inputs[kMask].isBoolList())
    return std::nullopt;
  const bool transposed = is_transposed(inputs, kTransposed);
  const auto mask = inputs[kMask].toBoolList();
  std::int64_t flops = 0;
  if (mask[0]) flops += of_filter(gradient[0], filter, places_of(transposed ? input : gradient));
  // The gradient of the filter is a convolution itself, whose filter is the other of the two.
  if (mask[1]) {
    const Shape other = transposed ? input : gradient;
    const std::int64_t channels = transposed ? gradient[1] : input[1];
    flops += places_of(filter) * places_of(other) * channels * other[0] * other[1] * 2;
  }
  return flops;
}

// Two products forward; backward five, one of which is the scores again.
Count of_attention(Shape query, Shape key, Shape value, bool backward) {
  constexpr std::size_t kRank = 4;
  if (query.size() != kRank || key.size() != kRank || value.size() != kRank) return std::nullopt;
  const std::int64_t pairs = query[0] * query[1] * query[2] * key[2];
  const std::int64_t of_keys = 2 * pairs * query[3], of_values = 2 * pairs * value[3];
  return backward ? 3 * of_keys + 2 * of_values : of_keys + of_values;
}

std::optional<Flops> as_they_are(Count count) {
  return count ? std::optional(Flops{*count}) : std::nullopt;
}

bool has_lengths(c10::ArrayRef<c10::IValue> inputs, std::size_t first, std::size_t end) {
  for (std::size_t at = first; at < end && at < inputs.size(); ++at)
    if (inputs[at].isTensor() && inputs[at].toTensor().defined() &&
        inputs[at].toTensor().dim() == 1)
      return true;
  return false;
}

const std::unordered_map<std::string_view, FlopFormula>& formulas() {
  using enum FlopFormula;
  static const auto* const all = new std::unordered_map<std::string_view, FlopFormula>{
      {"aten::mm", kMatrices},
      {"aten::_scaled_mm", kMatrices},
      {"aten::addmm", kAddedMatrices},
      {"aten::bmm", kBatches},
      {"aten::baddbmm", kAddedBatches},
      {"aten::convolution", kConvolution},
      {"aten::_convolution", kConvolution},
      {"aten::cudnn_convolution", kConvolution},
      {"aten::convolution_overrideable", kConvolution},
      {"aten::_slow_conv2d_forward", kConvolution},
      {"aten::convolution_backward", kConvolutionBackward},
      {"aten::_scaled_dot_product_efficient_attention", kAttention},
      {"aten::_scaled_dot_product_flash_attention", kAttention},
      {"aten::_scaled_dot_product_cudnn_attention", kAttention},
      {"aten::_scaled_dot_product_efficient_attention_backward", kAttentionBackward},
      {"aten::_scaled_dot_product_flash_attention_backward", kAttentionBackward},
      {"aten::_scaled_dot_product_cudnn_attention_backward", kAttentionBackward},
      {"aten::_flash_attention_forward", kPackedAttention},
      {"aten::_efficient_attention_forward", kPackedAttention},
      {"aten::_flash_attention_backward", kPackedAttentionBackward},
      {"aten::_efficient_attention_backward", kPackedAttentionBackward},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", kUnknown},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", kUnknown},
      {"aten::_scaled_dot_product_fused_attention_overrideable", kUnknown},
      {"aten::_scaled_dot_product_fused_attention_overrideable_backward", kUnknown},
      {"aten::_scaled_mm_v2", kUnknown},
      {"aten::_grouped_mm", kUnknown},
      {"aten::_scaled_grouped_mm", kUnknown},
      {"aten::_int_mm", kUnknown},
      {"aten::_weight_int8pack_mm", kUnknown},
      {"aten::_weight_int4pack_mm", kUnknown},
      {"aten::_cslt_sparse_mm", kUnknown},
      {"aten::_cudnn_rnn", kUnknown},
      {"aten::_cudnn_rnn_backward", kUnknown},
      {"aten::mkldnn_rnn_layer", kUnknown},
      {"aten::mkldnn_rnn_layer_backward", kUnknown},
      {"aten::mv", kUnknown},
      {"aten::addmv", kUnknown},
      {"aten::dot", kUnknown},
      {"aten::addbmm", kUnknown}};
  return *all;
}

}  // namespace

FlopFormula flop_formula(std::string_view name) {
  const auto found = formulas().find(name);
  return found == formulas().end() ? FlopFormula::kNone : found->second;
}

std::int64_t places_of(c10::ArrayRef<std::int64_t> output_shape) {
  return output_shape.size() < 2 ? 1 : product(output_shape.slice(2));
}

std::optional<Flops> flops_of(FlopFormula formula, c10::ArrayRef<c10::IValue> inputs) {
  const auto shape = [&](std::size_t at) { return shape_of(inputs, at); };
  constexpr std::size_t kBehindValue = 3, kBehindLogsumexp = 6, kLengths = 3;
  switch (formula) {
    case FlopFormula::kNone:
      return Flops{};
    case FlopFormula::kMatrices:
      return as_they_are(of_matrices(shape(0), shape(1)));
    case FlopFormula::kAddedMatrices:
      return as_they_are(of_matrices(shape(1), shape(2)));
    case FlopFormula::kBatches:
      return as_they_are(of_batches(shape(0), shape(1)));
    case FlopFormula::kAddedBatches:
      return as_they_are(of_batches(shape(1), shape(2)));
    case FlopFormula::kConvolution:
      return of_convolution(inputs);
    case FlopFormula::kConvolutionBackward:
      return as_they_are(of_convolution_backward(inputs));
    case FlopFormula::kAttention:
      return as_they_are(of_attention(shape(0), shape(1), shape(2), false));
    case FlopFormula::kAttentionBackward:
      return as_they_are(of_attention(shape(1), shape(2), shape(3), true));
    case FlopFormula::kPackedAttention:
      if (has_lengths(inputs, kBehindValue, kBehindValue + kLengths)) return std::nullopt;
      return as_they_are(of_attention(shape(0), shape(1), shape(2), false));
    case FlopFormula::kPackedAttentionBackward:
      if (has_lengths(inputs, kBehindLogsumexp, kBehindLogsumexp + kLengths)) return std::nullopt;
      return as_they_are(of_attention(shape(1), shape(2), shape(3), true));
    case FlopFormula::kUnknown:
      return std::nullopt;
  }
  return std::nullopt;
}

std::size_t first_factor(FlopFormula formula) {
  switch (formula) {
    case FlopFormula::kAddedMatrices:
    case FlopFormula::kAddedBatches:
    case FlopFormula::kAttentionBackward:
    case FlopFormula::kPackedAttentionBackward:
    case FlopFormula::kConvolutionBackward:
      return 1;
    default:
      return 0;
  }
}

}  // namespace peakbench::recording
