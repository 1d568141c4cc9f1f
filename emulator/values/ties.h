// Operators that take some of several equal values, where PyTorch does not say which.
#pragma once

#include <vector>

#include "values/value.h"

namespace peakbench::values {

// Before the operator runs: whether it will. What is known of its result then holds on the CPU, and
// maybe on no card.
bool chooses_among_equals(const Node& node, const std::vector<c10::IValue>& arguments);
// Enters it in the ledger.
void tell_of_equals();

}  // namespace peakbench::values
