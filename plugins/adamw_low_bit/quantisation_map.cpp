#include "quantisation_map.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace peakbench::adamw_low_bit {
namespace {

void append(std::vector<float>& values, const at::Tensor& more) {
  values.insert(values.end(), more.const_data_ptr<float>(),
                more.const_data_ptr<float>() + more.numel());
}

}  // namespace

std::vector<float> dynamic_map(bool is_signed, int bits) {
  std::vector<float> values = {0, 1};
  const int exponents = bits - 1;  // one bit is the sign's; without a sign, the fraction's
  for (int i = 0; i < exponents; ++i) {
    const std::int64_t fractions = std::int64_t{1} << (is_signed ? i : i + 1);
    const at::Tensor bounds = at::linspace(0.1, 1, fractions + 1, at::kFloat);
    const at::Tensor middles = (bounds.slice(0, 0, -1) + bounds.slice(0, 1)) / 2.0;
    const at::Tensor scaled = middles * std::pow(10.0, i + 1 - exponents);
    append(values, scaled);
    if (is_signed) append(values, -scaled);
  }
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<float> linear_map() {
  std::vector<float> values;
  append(values, at::linspace(0, 1, 17, at::kFloat).slice(0, 1));
  return values;
}

}  // namespace peakbench::adamw_low_bit
