// `peakbench report`: reports of runs made earlier, anywhere; no torch, no plugins.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "records/run_files.h"
#include "reports/analysis/peak_text.h"
#include "reports/run/report.h"
#include "trace/lifetimes.h"
#include "trace/trace_file.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReportFooter = R"(Examples:
  peakbench report results/vit
  peakbench report results/vit results/qwen --format html --out site
  peakbench report results/vit --templates my_templates
  peakbench report results/vit --format csv > vit.csv
  peakbench report results/train --format json | jq '.[0].peak.lines[0]'
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

// What fills each case's peak, as `emulate --json` has it; null where the case has no trace.
nlohmann::ordered_json peaks_json(const records::Run& run, const std::string& path) {
  auto peaks = nlohmann::ordered_json::array();
  for (const auto& result : run.cases) {
    auto& row = peaks.emplace_back(nlohmann::ordered_json{{"run", path},
                                                          {"case", result.spec.id},
                                                          {"status", to_string(result.status)},
                                                          {"peak", nullptr}});
    if (!records::has_trace(result)) continue;
    const auto trace = trace::read_trace(records::trace_file(result, records::run_folder_of(path)));
    row["peak"] = analysis::peak_json(trace, trace::lifetimes(trace));
  }
  return peaks;
}

// The formats that are printed.
int print(World& world, const ReportArguments& arguments, const std::string& format) {
  if (!arguments.out.empty() || !arguments.templates.empty())
    throw ConfigError(fmt::format(
        "--format {} is printed; it cannot be combined with --out or --templates", format));
  std::vector<records::Run> runs;
  for (const auto& path : arguments.runs) runs.push_back(records::read_run(path));
  if (format == "csv") {
    world.out << reports::cases_csv(runs);
    return kDone;
  }
  auto all = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (auto& row : peaks_json(runs[i], arguments.runs[i])) all.push_back(std::move(row));
  world.out << json_text(all);
  return kDone;
}

int write(World& world, const ReportArguments& arguments) {
  reports::ReportOptions options;
  if (!arguments.formats.empty())
    options.formats = split_values(arguments.formats, false, "--format");
  for (const auto* printed : {"csv", "json"})
    if (options.formats == std::vector<std::string>{printed})
      return print(world, arguments, printed);
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
               "Formats: html, markdown (default: both); csv: print the table of cases; json: "
               "print what fills their peaks",
               "NAME[,NAME]");
  add_value(*command, "-o,--out", arguments->out, "Folder of the report (default: RUN/report)",
            "DIR");
  add_templates(*command, arguments->templates);
  return [&world, arguments] { return write(world, *arguments); };
}

}  // namespace peakbench::cli
