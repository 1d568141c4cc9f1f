#include "values/arithmetic.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace peakbench::values {
namespace {

using enum Rounds;
using enum Follows;

constexpr auto kKnown = std::to_array<Arithmetic>({
    // Rounded to the nearest, once.
    {"aten::add", alike, either},
    {"aten::sub", alike, either},
    {"aten::rsub", alike, either},
    {"aten::mul", alike, either},
    {"aten::div", alike, one_side},
    {"aten::reciprocal", alike, one_side},
    {"aten::abs", alike, one_side},
    {"aten::sqrt", alike, rising},
    {"aten::copy", alike, rising},
    {"aten::_to_copy", alike, rising},
    // Whose formula on a card is computed (card_arithmetic.h).
    {"aten::arange", alike, nobody_knows},
    {"aten::linspace", alike, nobody_knows},
    {"aten::mean", sums, added_up},
    // Added up.
    {"aten::sum", sums, added_up},
    {"aten::nansum", sums, added_up},
    {"aten::trace", sums, added_up},
    {"aten::cumsum", own_sums, added_up},
    {"aten::scatter_add", own_sums, added_up},
    {"aten::index_add", own_sums, added_up},
    {"aten::index_put", own_sums, added_up},
    {"aten::_index_put_impl", own_sums, added_up},
    {"aten::put", own_sums, added_up},
    {"aten::bincount", own_sums, added_up},
    {"aten::embedding_dense_backward", own_sums, added_up},
    {"aten::dot", own_sums, added_up},
    {"aten::mv", own_sums, added_up},
    {"aten::mm", own_sums, added_up},
    {"aten::bmm", own_sums, added_up},
    {"aten::addmv", own_sums, added_up},
    {"aten::addmm", own_sums, added_up},
    {"aten::baddbmm", own_sums, added_up},
    // By approximations.
    {"aten::_softmax", shares, nobody_knows},
    {"aten::_log_softmax", shares, nobody_knows},
    {"aten::exp", a_little, rising},
    {"aten::exp2", a_little, rising},
    {"aten::expm1", a_little, rising},
    {"aten::log", a_little, rising},
    {"aten::log2", a_little, rising},
    {"aten::log10", a_little, rising},
    {"aten::log1p", a_little, rising},
    {"aten::sigmoid", a_little, rising},
    {"aten::tanh", a_little, rising},
    {"aten::erf", a_little, rising},
    {"aten::atan", a_little, rising},
    {"aten::sin", a_little, nobody_knows},
    {"aten::cos", a_little, nobody_knows},
    {"aten::rsqrt", a_little, nobody_knows},
    {"aten::pow", a_little, one_side},
    // Moved, chosen or compared.
    {"aten::clone", alike, rising},
    {"aten::cat", alike, rising},
    {"aten::stack", alike, rising},
    {"aten::fill", alike, rising},
    {"aten::zero", alike, rising},
    {"aten::index", alike, rising},
    {"aten::index_select", alike, rising},
    {"aten::index_copy", alike, rising},
    {"aten::gather", alike, rising},
    {"aten::scatter", alike, rising},
    {"aten::take", alike, rising},
    {"aten::embedding", alike, rising},
    {"aten::flip", alike, rising},
    {"aten::roll", alike, rising},
    {"aten::repeat", alike, rising},
    {"aten::constant_pad_nd", alike, rising},
    {"aten::tril", alike, rising},
    {"aten::triu", alike, rising},
    {"aten::where", alike, either},
    {"aten::masked_fill", alike, either},
    {"aten::neg", alike, either},
    {"aten::relu", alike, rising},
    {"aten::clamp", alike, rising},
    {"aten::clamp_min", alike, rising},
    {"aten::clamp_max", alike, rising},
    {"aten::maximum", alike, rising},
    {"aten::minimum", alike, rising},
    {"aten::amax", alike, rising},
    {"aten::amin", alike, rising},
    {"aten::max", alike, rising},
    {"aten::min", alike, rising},
    {"aten::sort", alike, rising},
    {"aten::topk", alike, rising},
    {"aten::argmax", alike, nobody_knows},
    {"aten::argmin", alike, nobody_knows},
    {"aten::floor", alike, rising},
    {"aten::ceil", alike, rising},
    {"aten::round", otherwise, rising},
    {"aten::trunc", alike, rising},
    {"aten::sign", alike, rising},
    {"aten::gt", alike, either},
    {"aten::ge", alike, either},
    {"aten::lt", alike, either},
    {"aten::le", alike, either},
    {"aten::eq", alike, equality},
    {"aten::ne", alike, equality},
    {"aten::logical_not", alike, equality},
    {"aten::bitwise_not", alike, either},
    {"aten::any", alike, rising},
    {"aten::all", alike, rising},
    {"aten::logical_and", alike, rising},
    {"aten::logical_or", alike, rising},
    {"aten::bitwise_and", alike, rising},
    {"aten::bitwise_or", alike, rising},
    // Scales that are powers of two, and the count beside them.
    {"aten::_amp_update_scale", alike, nobody_knows},
    {"aten::_amp_foreach_non_finite_check_and_unscale", alike, nobody_knows},
});
constexpr Arithmetic kUnknown = {"", otherwise, nobody_knows};

}  // namespace

const Arithmetic& arithmetic_of(std::string_view plain_name) {
  const auto* found = std::ranges::find(kKnown, plain_name, &Arithmetic::name);
  return found == kKnown.end() ? kUnknown : *found;
}

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
