// Does a strategy train as it promises? The reference case leaves its losses and trained parameters
// in a file; the others compare theirs with it, to the bit. The verdict itself is promise.h's.
#pragma once

#include <string>
#include <vector>

#include "peakbench/recipe.h"
#include "result/case.h"

namespace peakbench::worker {

// Parameters must be on the CPU. Throws std::runtime_error with the path when the file cannot be
// written whole; nothing is left there then.
void write_reference(const std::string& path, const std::vector<Parameter>& parameters,
                     const std::vector<double>& losses);

// Fills verdict, max_abs_difference and reason of `promise` (which brings promise, tolerances and
// reference_case). A reference that is missing or cut short is not_checked.
result::Equivalence compare_with_reference(const std::string& path, result::Equivalence promise,
                                           const std::vector<Parameter>& parameters,
                                           const std::vector<double>& losses);

}  // namespace peakbench::worker
