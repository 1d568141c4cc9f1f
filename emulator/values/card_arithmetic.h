// What a card computes by another formula than the CPU: the same here, bit for bit.
#pragma once

#include "values/unspecified.h"
#include "values/value.h"

namespace peakbench::values {

// Calls a division by a number, arange and linspace as CUDA's kernels do. False where the node is
// none of these.
bool call_as_a_card(const Node& node, Stack& stack);
// `sums` (double precision, rounded to the kernel's) times the factor of a mean of so many.
at::Tensor mean_of_sums(const at::Tensor& sums, std::int64_t elements, at::ScalarType dtype);

}  // namespace peakbench::values
