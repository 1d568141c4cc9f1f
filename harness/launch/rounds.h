// In which order the cases that are compared take turns at being timed. Pure.
//
// A round times every case of a group once, each in a process of its own. What the machine does
// over the minutes meets all cases of a round alike, so what is compared is the ratio within a
// round (reports/analysis/timing.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "result/case.h"

namespace peakbench::launch {

// The places of `count` cases, 0 to count - 1, in the order they run in a round, from 0 on. Every
// second round is its predecessor backwards, which cancels a drift; every pair begins one case
// further. So over 2 * count rounds each case has had each place twice.
std::vector<std::size_t> round_order(std::size_t count, std::int64_t round);

// The rounds of `rounds` that a case has not been timed in, in order.
std::vector<std::int64_t> missing_rounds(const result::CaseResult& result, std::int64_t rounds);

}  // namespace peakbench::launch
