// Which values the codes of quantised optimizer state stand for, in ascending order, all in [-1,
// 1].
#pragma once

#include <vector>

namespace peakbench::adamw_low_bit {

// The dynamic map: a sign or not, an exponent of variable length, a linear fraction. 2^bits values,
// with zero. Source: "8-bit Approximations for Parallelism in Deep Learning",
// https://arxiv.org/abs/1511.04561, as bitsandbytes and torchao make it (create_dynamic_map).
std::vector<float> dynamic_map(bool is_signed, int bits);

// 1/16, 2/16, ..., 1: without zero, as second moments never need it. Source: "Memory Efficient
// Optimizers with 4-bit States", https://arxiv.org/abs/2309.01507
std::vector<float> linear_map();

}  // namespace peakbench::adamw_low_bit
