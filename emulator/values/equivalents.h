// What on the CPU gives what an operator gives that only CUDA has.
#pragma once

#include <ATen/core/ivalue.h>

#include <string_view>
#include <vector>

namespace peakbench::values {

// Takes the arguments off the stack and puts the results there, in their order; those that are
// missing at the end (reserve spaces, random states) nobody knows. Throws where the CPU refuses.
using Equivalent = void (*)(std::vector<c10::IValue>& stack);

// Null where there is none.
Equivalent equivalent_of(std::string_view name);

}  // namespace peakbench::values
