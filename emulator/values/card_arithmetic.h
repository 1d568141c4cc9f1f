#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "values/unspecified.h"
#include "values/value.h"

namespace peakbench::values {

// What a card computes by another formula than the CPU: the same here, bit for bit.

// Calls a division by a number, arange and linspace as CUDA's kernels do. False for other nodes.
bool call_as_a_card(const Node& node, Stack& stack);
// `sums` (double precision, rounded to the kernel's) times the factor of a mean of so many.
at::Tensor mean_of_sums(const at::Tensor& sums, std::int64_t elements, at::ScalarType dtype);

// Floating-point numbers converted to integers that cannot hold them (infinity, NaN, 1e10 as
// int32). C++ leaves the result open, and a card gives other integers than the CPU.

struct Node;

// Whether a call that was given these makes such integers on the card. What the host itself
// converts, before it copies, is what the CPU gives.
bool converts_beyond_range(const Node& node, const std::vector<c10::IValue>& arguments);

}  // namespace peakbench::values
