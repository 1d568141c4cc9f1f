// One run to compare, and what is at hand of its traces.
#pragma once

#include <string>
#include <vector>

#include "reports/analysis/parts.h"
#include "result/run.h"
#include "trace/lines.h"

namespace peakbench::analysis {

struct Source {
  result::Run run;
  std::vector<CaseParts> parts;  // of cases whose trace was at hand when they were filed
  std::string folder;            // where traces are, to be read where they are needed; "" = none
  std::string label;             // "results/new", "main@latest (run 12, 3f9c2d1)"
  // What `peakbench emulate --json` wrote: of memory it has allocated and reserved at the peak and,
  // where it was traced, the categories and `lines` there. What else a case would have is not known
  // rather than none.
  bool peaks_only = false;
  std::vector<trace::LineShare> lines = {};
};

}  // namespace peakbench::analysis
