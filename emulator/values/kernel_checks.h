// Checks that a card's kernels make of what they are given: an index beyond a dimension, a label
// beyond the classes, what is asserted. One that fails stops the card (a device-side assert).
#pragma once

#include <ATen/core/ivalue.h>

#include <string_view>

namespace peakbench::values {

struct Operator;

// Which number is held against what.
enum class Bound {
  dimension,    // an index along the argument `dim` of the first argument
  rows,         // of the first argument
  elements,     // of the first argument, from its end too
  listed,       // a list of indices, one a dimension, from its end too
  classes,      // a label; `ignore_index` is none
  image,        // an index into the last dimensions, which an argument gives
  probability,  // from 0 to 1
  places,       // of a mask, for as many values
  truth,
};

// Of an operator, what its kernel looks at.
struct KernelCheck {
  std::string_view name;      // of the operator, without a `_` at its end
  std::string_view argument;  // that is looked at
  Bound bound;
  bool from_end = false;  // negative indices count from the end
};

// Null where there is none.
const KernelCheck* kernel_check_of(std::string_view plain_name);

// Makes the check where the numbers that it looks at are known: they are computed. One that fails
// is told of. With no lock held.
void check_as_a_kernel(const Operator& op, c10::ArrayRef<const c10::IValue> arguments);

}  // namespace peakbench::values
