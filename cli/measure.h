#pragma once

#include <optional>
#include <string>

#include "base/errors.h"
#include "cli/program.h"
#include "launch/session.h"
#include "planning/manifest.h"
#include "reports/run/report.h"

namespace peakbench::cli {

// "results/TITLE-20261103T140500Z", the default folder of a run. Appends "-2" and so on if that
// name is taken.
std::string folder_for(const std::string& title);
// The same, made: of several programs that start within a second, each has a folder of its own.
// Where none can be made, the name alone: RunFolder says why.
std::string make_folder_for(const std::string& title);

// Of --jobs: where it was not typed, the usable cores.
std::size_t jobs_of(std::optional<std::int64_t> typed);

// Fills in `options.parameters` from the plugins, and `options.jobs` with jobs_of().
void complete(launch::SessionOptions& options, const planning::Found& plugins,
              std::optional<std::int64_t> jobs);

// The report that a run has in its own folder, with our templates; for write_reports.
reports::ReportOptions own_report(const World& world, const std::string& folder);

// What is thrown where it could not be written, after all else is done. `kept`: "Everything
// measured is in results/vit/run.json".
ConfigError report_not_written(const std::string& problem, const std::string& kept,
                               const std::string& folder);

}  // namespace peakbench::cli
