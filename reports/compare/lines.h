// The lines of a program's code whose bytes at the peak differ between two runs. For the room's
// own use.
#pragma once

#include "reports/compare/compare.h"

namespace peakbench::compare {

// The largest difference first, grown or shrunk. Empty where either has no trace of its peak, or
// one without call stacks. Lines go by file and function, and within a
// function by their order, paired where they have the same number or the same bytes: one that an
// edit has moved stays the same line. They have NEW's numbers, one that is gone BASE's. Where the
// runs have no file in common, because they lay in two folders, files go by what they are called
// within.
std::vector<LineChange> line_changes(const Source& base, const result::CaseResult& before,
                                     const Source& now, const result::CaseResult& after);

}  // namespace peakbench::compare
