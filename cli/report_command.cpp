// `peakbench report`: reports of runs made earlier, anywhere; no torch, no plugins.

#include <filesystem>
#include <memory>

#include "base/errors.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "records/run_files.h"
#include "reports/run/report.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReportFooter = R"(Examples:
  peakbench report results/vit
  peakbench report results/vit results/qwen --format html --out site
  peakbench report results/vit --templates my_templates
  peakbench report results/vit --format csv > vit.csv
Exit codes: 0 done; 2 a run cannot be read (missing, truncated, newer than this program), or a template is
wrong.)";

struct ReportArguments {
  std::vector<std::string> runs, formats;
  std::string out, templates;
};

std::string folder_beside(const std::vector<std::string>& runs) {
  if (runs.size() > 1) return "report";
  return fs::path(records::run_folder_of(runs.front())) / "report";
}

int print_csv(World& world, const ReportArguments& arguments) {
  if (!arguments.out.empty() || !arguments.templates.empty())
    throw ConfigError(
        "--format csv prints the table; it cannot be combined with --out or --templates");
  std::vector<records::Run> runs;
  for (const auto& path : arguments.runs) runs.push_back(records::read_run(path));
  world.out << reports::cases_csv(runs);
  return kDone;
}

int write(World& world, const ReportArguments& arguments) {
  reports::ReportOptions options;
  if (!arguments.formats.empty())
    options.formats = split_values(arguments.formats, false, "--format");
  if (options.formats == std::vector<std::string>{"csv"}) return print_csv(world, arguments);
  options.output_directory = arguments.out.empty() ? folder_beside(arguments.runs) : arguments.out;
  options.is_in_run = arguments.out.empty() && arguments.runs.size() == 1;
  options.template_directory = arguments.templates;
  options.builtin_template_directory = world.places.templates;
  for (const auto& path : reports::write_reports(arguments.runs, options))
    world.out << path << "\n";
  return kDone;
}

}  // namespace

Command add_report(CLI::App& app, World& world) {
  auto* command = subcommand(app, "report", "Write reports of earlier runs", kReportFooter);
  const auto arguments = std::make_shared<ReportArguments>();
  add_value(*command, "runs", arguments->runs, "Run folders, or their run.json", "RUN...")
      ->required();
  add_repeated(*command, "-f,--format", arguments->formats,
               "Formats: html, markdown (default: both); csv: print the table of cases",
               "NAME[,NAME]");
  add_value(*command, "-o,--out", arguments->out, "Folder of the report (default: RUN/report)",
            "DIR");
  add_templates(*command, arguments->templates);
  return [&world, arguments] { return write(world, *arguments); };
}

}  // namespace peakbench::cli
