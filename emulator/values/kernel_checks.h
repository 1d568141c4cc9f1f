// Checks that a card's kernels make of their arguments: an index beyond a dimension, a label beyond
// the classes, an assertion. A failed check stops the card (a device-side assert).
#pragma once

#include <ATen/core/ivalue.h>

#include <string_view>

namespace peakbench::values {

struct Operator;

// The limit that a number is compared with.
enum class Bound {
  dimension,    // an index along the argument `dim` of the first argument
  rows,         // of the first argument
  elements,     // of the first argument, from its end too
  listed,       // a list of indices, one a dimension, from its end too
  classes,      // a label, except `ignore_index`
  image,        // an index into the last dimensions, which an argument gives
  probability,  // from 0 to 1
  places,       // of a mask, for as many values
  truth,
};

// An argument of an operator that its kernel checks.
struct KernelCheck {
  std::string_view name;      // of the operator, without a `_` at its end
  std::string_view argument;  // that is looked at
  Bound bound;
  bool from_end = false;  // negative indices count from the end
};

// Null if the kernel checks nothing.
const KernelCheck* kernel_check_of(std::string_view plain_name);

// Makes the check if its numbers are known (computes them). Reports a failed one. Call with no lock
// held.
void check_as_a_kernel(const Operator& op, c10::ArrayRef<const c10::IValue> arguments);

}  // namespace peakbench::values
