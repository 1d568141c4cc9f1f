// The report that a run has in its own folder.
#pragma once

#include <string>

#include "cli/program.h"
#include "reports/report/report.h"

namespace peakbench::cli {

// Of the run in this folder, with our templates; for write_reports.
reports::ReportOptions own_report(const World& world, const std::string& folder);

}  // namespace peakbench::cli
