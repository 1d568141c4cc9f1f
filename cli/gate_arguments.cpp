#include "cli/gate_arguments.h"

#include "cli/axis_options.h"
#include "cli/quantities.h"
#include "errors/errors.h"
#include "program/emulated_json.h"
#include "reports/history/source.h"

namespace peakbench::cli {
namespace {

using analysis::Source;

void add_policy(CLI::App& command, ComparisonArguments& arguments) {
  const std::string group = "Policy (default: the suite's table `gate`, else the defaults below)";
  const auto add = [&](const std::string& option, const std::string& key, const std::string& words,
                       const std::string& type) {
    command
        .add_option_function<std::string>(
            option, [&arguments, key](const std::string& text) { arguments.policy[key] = text; },
            words)
        ->type_name(type)
        ->group(group);
  };
  add("--requested", "requested",
      "Allowed increase of the requested bytes: 0 (default), 512, 1MiB, 0.5%", "SIZE|PART");
  add("--allocated", "allocated",
      "Allowed increase of the allocated bytes: 0 (default), 1MiB, 0.5%", "SIZE|PART");
  add("--reserved", "reserved", "Allowed increase of the reserved bytes: 2% (default), 20MiB",
      "SIZE|PART");
  add("--throughput", "throughput", "Allowed slowdown: 2% (default); off: ignore times",
      "PART|off");
  add("--false-alarms", "false_alarms",
      "Rate of false alarms: how often an equally fast build may be called worse: 1% (default)",
      "PART");
  add("--failed", "failed", "If a case no longer ends ok: fail (default) or pass", "fail|pass");
  add("--missing", "missing", "If a case of BASE is missing in NEW: fail (default) or pass",
      "fail|pass");
  add("--verdict", "verdict",
      "If the verdict of an emulated case became weaker (exact > exact if > a bound > unreliable): "
      "fail (default) or pass",
      "fail|pass");
  add("--phases", "phases",
      "If the maximum of a phase grew: fail (default); pass: check the peak only", "fail|pass");
}

compare::Policy policy_for(const ComparisonArguments& arguments, const analysis::Source& base,
                           const analysis::Source& now) {
  auto policy = compare::policy_of(base, now);
  for (const auto& [key, text] : arguments.policy) {
    auto option = "--" + key;
    if (key == "false_alarms") option = "--false-alarms";
    result::set_gate(policy, key, text, option);
  }
  return policy;
}

}  // namespace

void add_comparison_options(CLI::App& command, ComparisonArguments& arguments) {
  command
      .add_option("base", arguments.base,
                  "Run to compare with: its folder, its run.json, history:main@latest, or a file "
                  "of `peakbench emulate --json`")
      ->required()
      ->type_name("BASE");
  command.add_option("new", arguments.now, "New run, given like BASE")
      ->required()
      ->type_name("NEW");
  command
      .add_option(
          "--history", arguments.history,
          "File of the history (default: $PEAKBENCH_HISTORY, else ./peakbench-history.sqlite)")
      ->type_name("FILE");
  command.add_flag("--json", arguments.json,
                   "Print the comparison as JSON (docs/how-to/compare.md)");
  add_repeated(command, "-f,--format", arguments.formats,
               "Formats of the pages in --out: html, markdown, json, text (default: html and "
               "markdown); csv: print the figures as CSV",
               "NAME[,NAME]");
  command.add_option("-o,--out", arguments.out, "Folder of the pages")->type_name("DIR");
  command
      .add_option("--templates", arguments.templates,
                  "Folder with templates that replace the bundled ones, file by file")
      ->type_name("DIR");
  add_policy(command, arguments);
}

bool prints_csv(const ComparisonArguments& arguments) {
  return arguments.formats == std::vector<std::string>{"csv"} && arguments.out.empty();
}

namespace {

Source read_side(const std::string& named, const std::string& history) {
  auto program = program::read_emulated_json(named);
  if (!program) return history::read_source(named, history);
  Source source;
  source.run = std::move(program->run);
  source.lines = std::move(program->lines);
  source.label = named;
  source.peaks_only = true;
  return source;
}

}  // namespace

Compared compare_runs(const ComparisonArguments& arguments) {
  if (!arguments.formats.empty() && !prints_csv(arguments) && arguments.out.empty())
    throw ConfigError("--format needs --out DIR: the folder that the pages are written to");
  const auto file = history::history_file(arguments.history);
  Compared compared{read_side(arguments.base, file), read_side(arguments.now, file), {}};
  compared.comparison = compare::compare(compared.base, compared.now,
                                         policy_for(arguments, compared.base, compared.now));
  return compared;
}

std::vector<std::string> write_pages(const World& world, const ComparisonArguments& arguments,
                                     const Compared& compared,
                                     const std::optional<compare::GateNote>& gate,
                                     const nlohmann::ordered_json& json) {
  if (arguments.out.empty()) return {};
  compare::PageOptions options;
  if (!arguments.formats.empty())
    options.formats = split_values(arguments.formats, false, "--format");
  options.output_directory = arguments.out;
  options.template_directory = arguments.templates;
  options.builtin_template_directory = world.places.templates;
  options.gate = gate;
  options.json = json;
  return compare::write_pages(compared.base, compared.now, compared.comparison, options);
}

}  // namespace peakbench::cli
