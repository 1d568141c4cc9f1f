// The report that a run has in its own folder.
#pragma once

#include <string>

#include "cli/program.h"
#include "errors/errors.h"
#include "reports/report/report.h"

namespace peakbench::cli {

// Of the run in this folder, with our templates; for write_reports.
reports::ReportOptions own_report(const World& world, const std::string& folder);

// What is thrown where it could not be written, after all else is done. `kept`: "Everything
// measured is in results/vit/run.json".
ConfigError report_not_written(const std::string& problem, const std::string& kept,
                               const std::string& folder);

}  // namespace peakbench::cli
