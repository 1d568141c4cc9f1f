#include "values/equivalents.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "values/equivalent_kernels.h"

namespace peakbench::values {
namespace {

constexpr std::uint32_t bits(std::initializer_list<int> arguments) {
  std::uint32_t all = 0;
  for (const int argument : arguments) all |= 1U << argument;
  return all;
}

constexpr auto kEquivalents = std::to_array<Equivalent>({
    {"aten::cudnn_convolution", convolution},
    {"aten::cudnn_convolution_transpose", transposed_convolution},
    {"aten::cudnn_convolution_relu", convolution_relu},
    {"aten::cudnn_convolution_add_relu", convolution_add_relu},
    {"aten::cudnn_batch_norm", batch_norm},
    {"aten::cudnn_batch_norm_backward", batch_norm_backward, bits({8})},
    {"aten::batch_norm_stats", batch_norm_stats},
    {"aten::batch_norm_gather_stats", batch_norm_gather_stats},
    {"aten::batch_norm_gather_stats_with_counts", batch_norm_gather_stats},
    {"aten::batch_norm_elemt", batch_norm_elements},
    {"aten::batch_norm_backward_reduce", batch_norm_backward_sums},
    {"aten::batch_norm_backward_elemt", batch_norm_backward_elements},
    {"aten::_scaled_dot_product_flash_attention", flash_attention},
    {"aten::_scaled_dot_product_flash_attention_backward", flash_attention_backward,
     bits({4, 5, 6, 7, 12, 13})},
    {"aten::_scaled_dot_product_efficient_attention", efficient_attention},
    {"aten::_scaled_dot_product_efficient_attention_backward", efficient_attention_backward,
     bits({5, 6, 7, 8})},
    {"aten::_scaled_dot_product_cudnn_attention", cudnn_attention},
    {"aten::_scaled_dot_product_cudnn_attention_backward", cudnn_attention_backward,
     bits({4, 5, 6, 7, 9, 10})},
    {"aten::_cudnn_rnn", recurrent},
    {"aten::_cudnn_rnn_backward", recurrent_backward, bits({3, 6, 19, 20})},
});

}  // namespace

const Equivalent* equivalent_of(std::string_view name) {
  const auto* found = std::ranges::find(kEquivalents, name, &Equivalent::name);
  return found == kEquivalents.end() ? nullptr : found;
}

}  // namespace peakbench::values
