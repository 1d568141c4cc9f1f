#include "values/numbers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace peakbench::values {
namespace {

// What an exponential may be wrong by, in units in the last place.
constexpr double kExponentialUnits = 16;

}  // namespace

int bits_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return 53;
    case at::kHalf:
      return 11;
    case at::kBFloat16:
      return 8;
    default:
      return 24;
  }
}

bool is_same(const at::Tensor& wide, const at::Tensor& actual) {
  const at::Tensor other = actual.to(wide.scalar_type());
  return wide.eq(other).logical_or(wide.isnan().logical_and(other.isnan())).all().item<bool>();
}

double quantum_of(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::kDouble).contiguous();
  const auto* all = numbers.data_ptr<double>();
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < numbers.numel(); ++i) {
    if (all[i] == 0 || !std::isfinite(all[i])) continue;
    int exponent = 0;
    const double mantissa = std::abs(std::frexp(all[i], &exponent));
    const auto whole = static_cast<std::uint64_t>(std::ldexp(mantissa, 53));
    least = std::min(least, std::ldexp(1.0, exponent - 53 + __builtin_ctzll(whole)));
  }
  return least;
}

// Where each exponent is wrong by so much at most, each share is by a factor of twice that: the
// sum moves with it.
Between shares_between(const at::Tensor& wide, const Between& exponents, std::int64_t dim,
                       bool logarithms, at::ScalarType dtype) {
  const at::Tensor low = exponents.first.to(at::kDouble), high = exponents.second.to(at::kDouble);
  const at::Tensor width = (high - low).nan_to_num(0).amax(dim, true);
  const at::Tensor range = high.masked_fill(high.isinf(), 0).amax(dim, true) -
                           low.masked_fill(low.isinf(), 0).amin(dim, true);
  const double unit = std::ldexp(1.0, dtype == at::kDouble ? -52 : -23);
  const auto terms = static_cast<double>(low.size(dim));
  const at::Tensor wrong = width + (range + terms + kExponentialUnits) * unit;
  if (!logarithms) return {(wide / wrong.exp()).to(dtype), (wide * wrong.exp()).to(dtype)};
  const at::Tensor error = wrong + wide.abs() * unit;
  return {(wide - error).to(dtype), (wide + error).to(dtype)};
}

Between equality_between(const Between& left, const Between& right) {
  const at::Tensor apart = left.first.gt(right.second).logical_or(left.second.lt(right.first));
  const at::Tensor one = left.first.eq(left.second)
                             .logical_and(right.first.eq(right.second))
                             .logical_and(left.first.eq(right.first));
  return {one, apart.logical_not()};
}

bool is_order_decided(const at::Tensor& data, const Between& numbers, std::int64_t dim,
                      std::string_view operation) {
  if (data.dim() == 0 || data.numel() == 0 || data.size(dim) < 2) return true;
  const auto last = data.size(dim) - 1;
  const at::Tensor order = data.argsort(dim);
  const at::Tensor lows = numbers.first.gather(dim, order),
                   highs = numbers.second.gather(dim, order);
  at::Tensor below = highs.narrow(dim, 0, last), above = lows.narrow(dim, 1, last);
  if (operation.ends_with("max")) above = lows.narrow(dim, last, 1);
  if (operation.ends_with("min")) below = highs.narrow(dim, 0, 1);
  return below.lt(above).all().item<bool>();
}

}  // namespace peakbench::values
