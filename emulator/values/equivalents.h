#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace peakbench::values {

// What on the CPU gives what an operator gives that only CUDA has.

using Stack = std::vector<c10::IValue>;

struct Equivalent {
  std::string_view name;  // of the operator
  // Takes the arguments off the stack and puts the results there, in their order; those that are
  // missing at the end (reserve spaces, random states) nobody knows. Throws where the CPU refuses.
  void (*call)(Stack& stack);
  // Arguments that it does without, a bit each: what the forward pass left for the card's kernel
  // alone, of which nobody knows the value. They are None.
  std::uint32_t unused = 0;

  bool uses(int argument) const { return (unused >> argument & 1U) == 0; }
};

// Null where there is none.
const Equivalent* equivalent_of(std::string_view name);

}  // namespace peakbench::values
