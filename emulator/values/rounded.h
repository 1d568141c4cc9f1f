// What a card may round otherwise than the CPU: a value between two others on any card.
#pragma once

#include <ATen/core/Tensor.h>

#include "values/choices.h"

namespace peakbench::values {

struct Rounded {
  Choices by;  // the first operator that rounded; empty: none, a card has the CPU's value
  // As many bytes as the value has: what it is at least and at most. Undefined: nobody knows.
  at::Tensor low, high;

  bool any() const { return !by.empty(); }
  bool is_bounded() const { return low.defined(); }
};

}  // namespace peakbench::values
