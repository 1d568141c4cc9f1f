// What can be said of numbers of which each lies between two others.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <utility>

namespace peakbench::values {

// Bits of a number's mantissa, with the one that is not written.
int bits_of(at::ScalarType dtype);
// Whether both hold the same numbers, or none.
bool is_same(const at::Tensor& wide, const at::Tensor& actual);
// The largest power of two of which all numbers are multiples; infinity where all are zero.
double quantum_of(const at::Tensor& tensor);

using Between = std::pair<at::Tensor, at::Tensor>;

// Exponentials divided by their sum along a dimension, or the logarithms of that: `wide` is what
// they are in double precision. In float on a card, or in double where they are `dtype`.
Between shares_between(const at::Tensor& wide, const Between& exponents, std::int64_t dim,
                       bool logarithms, at::ScalarType dtype);
// Whether they are equal.
Between equality_between(const Between& left, const Between& right);
// Whether they lie so far apart along a dimension that any of them are in the order of `data`; of
// "max" and "min" (the end of `operation`), whether the first one is.
bool is_order_decided(const at::Tensor& data, const Between& numbers, std::int64_t dim,
                      std::string_view operation);

}  // namespace peakbench::values
