#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace peakbench::values {

// How PyTorch's operators round, on a card and on the CPU. docs/explanation/rounding.md has the
// source of each row.

// What an operator itself rounds, whatever its inputs are.
enum class Rounds : std::uint8_t {
  alike,      // nothing, or to the nearest, once, on both
  sums,       // adds in any order, in float (of double: in double)
  own_sums,   // adds in any order, maybe in the type of the numbers themselves
  a_little,   // to within some units in the last place
  shares,     // exponentials, divided by their sum, or the logarithms of that
  otherwise,  // unknown: only right where double precision gives the same
};
// How an output moves when an input does.
enum class Follows : std::uint8_t {
  added_up,  // as a sum of inputs or of products of two does
  rising,    // never falls when an input rises
  either,    // rises or falls with each input, as long as the others stay
  one_side,  // the same, of numbers on one side of zero
  equality,  // is whether inputs are equal, or not zero
  nobody_knows,
};

struct Arithmetic {
  std::string_view name;  // without a `_` at its end
  Rounds rounds;
  Follows follows;
};

const Arithmetic& arithmetic_of(std::string_view plain_name);

// Bounds of numbers: each number lies between two others.

// Bits of a number's mantissa, with the one that is not written.
int bits_of(at::ScalarType dtype);
// Whether both hold the same numbers, or none.
bool is_same(const at::Tensor& wide, const at::Tensor& actual);
// The largest power of two that divides all numbers; infinity if all are zero.
double quantum_of(const at::Tensor& tensor);

using Between = std::pair<at::Tensor, at::Tensor>;

// Exponentials divided by their sum along a dimension, or the logarithms of that: `wide` is what
// they are in double precision. In float on a card, or in double where they are `dtype`.
Between shares_between(const at::Tensor& wide, const Between& exponents, std::int64_t dim,
                       bool logarithms, at::ScalarType dtype);
// Whether they are equal.
Between equality_between(const Between& left, const Between& right);
// Whether the numbers lie so far apart along a dimension that their order is that of `data`,
// whichever values between the bounds they have. For "max" and "min" (the end of `operation`):
// whether the first one is decided.
bool is_order_decided(const at::Tensor& data, const Between& numbers, std::int64_t dim,
                      std::string_view operation);

}  // namespace peakbench::values
