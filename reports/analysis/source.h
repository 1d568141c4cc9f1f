// One run to compare, and what is at hand of its traces.
#pragma once

#include <string>
#include <vector>

#include "reports/analysis/parts.h"
#include "result/run.h"

namespace peakbench::analysis {

struct Source {
  result::Run run;
  std::vector<CaseParts> parts;  // of the cases whose trace was at hand, then or now
  std::string folder;            // where traces are; "" = none at hand
  std::string label;             // "results/new", "main@latest (run 12, 3f9c2d1)"
};

}  // namespace peakbench::analysis
