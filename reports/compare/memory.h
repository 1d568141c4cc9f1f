// The memory of one case in two runs. For this module alone.
#pragma once

#include "reports/compare/compare.h"

namespace peakbench::compare {

// Fills measures, categories, growth and the direction of a case that ended ok in both.
void compare_memory(const Source& base, const records::CaseResult& before, const Source& now,
                    const records::CaseResult& after, const Policy& policy, CaseComparison& found);

}  // namespace peakbench::compare
