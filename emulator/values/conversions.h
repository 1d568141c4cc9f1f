// Floating-point numbers that are made integers which cannot hold them (infinity, NaN, 1e10 as
// int32): C++ leaves open what comes of them, and a card gives other integers than the CPU.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

namespace peakbench::values {

struct Node;

// Whether a call that was given these makes such integers on the card. What the host itself
// converts, before it copies, is what the CPU gives.
bool converts_beyond_range(const Node& node, const std::vector<c10::IValue>& arguments);

}  // namespace peakbench::values
