// The ranks of a case's worker group, and whose figures are the case's.
#pragma once

#include <cstddef>
#include <vector>

#include "result/case.h"

namespace peakbench::result {

// The one with the highest peak of allocated memory, of equals the first. Where none has figures:
// the first with a trace, else the first. Its place in the list; 0 of none.
std::size_t largest_rank(const std::vector<Rank>& ranks);

// What is shown of a case, memory and trace, is its largest rank's. Empty where it has none.
const Rank& headline_rank(const CaseResult& result);

}  // namespace peakbench::result
