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
  // Pops the arguments and pushes the results in their order. Missing results at the end (reserve
  // spaces, random states) have unknown values. Throws if the CPU refuses.
  void (*call)(Stack& stack);
  // Bits of unused arguments, which are None. They were made by the forward pass for the card's
  // kernel alone, and their values are unknown.
  std::uint32_t unused = 0;

  bool uses(int argument) const { return (unused >> argument & 1U) == 0; }
};

// Null if there is no equivalent.
const Equivalent* equivalent_of(std::string_view name);

}  // namespace peakbench::values
