// A run's table for spreadsheets and data frames.
#pragma once

#include <string>
#include <vector>

#include "result/run.h"

namespace peakbench::reports {

// A row a case, with the names of run.json: setting, outcome, peaks and their categories, times,
// how far the figures can be relied on, the promise. `run` is the title of its run.
std::string cases_csv(const std::vector<result::Run>& runs);

}  // namespace peakbench::reports
