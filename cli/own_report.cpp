#include "cli/own_report.h"

#include <fmt/format.h>

#include <filesystem>

namespace peakbench::cli {

reports::ReportOptions own_report(const World& world, const std::string& folder) {
  reports::ReportOptions options;
  options.output_directory = (std::filesystem::path(folder) / "report").string();
  options.is_in_run = true;
  options.builtin_template_directory = world.places.templates;
  return options;
}

ConfigError report_not_written(const std::string& problem, const std::string& kept,
                               const std::string& folder) {
  return ConfigError(fmt::format(
      "the report could not be written: {}\n{}; `peakbench report {}` makes the report.", problem,
      kept, folder));
}

}  // namespace peakbench::cli
