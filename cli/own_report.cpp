#include "cli/own_report.h"

#include <filesystem>

namespace peakbench::cli {

reports::ReportOptions own_report(const World& world, const std::string& folder) {
  reports::ReportOptions options;
  options.output_directory = (std::filesystem::path(folder) / "report").string();
  options.is_in_run = true;
  options.builtin_template_directory = world.places.templates;
  return options;
}

}  // namespace peakbench::cli
