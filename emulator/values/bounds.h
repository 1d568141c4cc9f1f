// Where a card may round otherwise than the CPU did.
#pragma once

#include <vector>

#include "values/evaluate.h"

namespace peakbench::values {

// By output of a call that was evaluated, and rests on no substitute. Where a card's result is
// known and is another, it takes the place of the CPU's.
std::vector<Rounded> rounded_in(const Node& node, Evaluation& got);
// The roundings of all inputs of a node, without looking at the numbers.
Rounded rounded_like_inputs(const Node& node);

}  // namespace peakbench::values
