// `peakbench compare` and `peakbench gate`.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "programs/run_folder.h"
#include "reports/compare/gate.h"
#include "reports/compare/render.h"
#include "reports/render/words.h"
#include "reports/trends/source.h"

namespace peakbench::cli {
namespace {

using analysis::Source;

// What both take: two runs, a policy, and where the reader wants the answer.
struct ComparisonArguments {
  std::string base, now, history, out, templates;
  std::vector<std::string> formats;
  bool json = false;
  std::map<std::string, std::string> policy;  // by key of the suite's table `gate`
};

struct Compared {
  Source base, now;
  compare::Comparison comparison;
};

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
  for (const auto& [key, text] : arguments.policy)
    records::set_gate(policy, key, text, key == "false_alarms" ? "--false-alarms" : "--" + key);
  return policy;
}

void add_comparison_options(CLI::App& command, ComparisonArguments& arguments) {
  add_value(command, "base", arguments.base,
            "Run to compare with: its folder, its run.json, history:main@latest, or a file of "
            "`peakbench emulate --json`",
            "BASE")
      ->required();
  add_value(command, "new", arguments.now, "New run, given like BASE", "NEW")->required();
  add_value(command, "--history", arguments.history,
            "File of the history (default: $PEAKBENCH_HISTORY, else ./peakbench-history.sqlite)",
            "FILE");
  command.add_flag("--json", arguments.json,
                   "Print the comparison as JSON (docs/how-to/compare.md)");
  add_repeated(command, "-f,--format", arguments.formats,
               "Formats of the pages in --out: html, markdown, json, text (default: html and "
               "markdown); csv: print the figures as CSV",
               "NAME[,NAME]");
  add_value(command, "-o,--out", arguments.out, "Folder of the pages", "DIR");
  add_templates(command, arguments.templates);
  add_policy(command, arguments);
}

// `--format csv` without --out: the figures are printed in place of the text.
bool prints_csv(const ComparisonArguments& arguments) {
  return arguments.formats == std::vector<std::string>{"csv"} && arguments.out.empty();
}

Source read_side(const std::string& named, const std::string& history) {
  auto program = programs::read_emulated_json(named);
  if (!program) return trends::read_source(named, history);
  Source source;
  source.run = std::move(program->run);
  source.lines = std::move(program->lines);
  source.label = named;
  source.peaks_only = true;
  return source;
}

// Reads both, and compares them by the suite's policy with what was typed in its place. Throws
// ConfigError.
Compared compare_runs(const ComparisonArguments& arguments, compare::Pairing pairing) {
  if (!arguments.formats.empty() && !prints_csv(arguments) && arguments.out.empty())
    throw ConfigError("--format needs --out DIR: the folder that the pages are written to");
  const auto file = trends::history_file(arguments.history);
  Compared compared{read_side(arguments.base, file), read_side(arguments.now, file), {}};
  compared.comparison = compare::compare(
      compared.base, compared.now, policy_for(arguments, compared.base, compared.now), pairing);
  return compared;
}

// `json` is what the format json writes.
compare::PageOptions page_options(const World& world, const ComparisonArguments& arguments,
                                  const nlohmann::ordered_json& json) {
  compare::PageOptions options;
  if (!arguments.formats.empty() && !arguments.out.empty())
    options.formats = split_values(arguments.formats, false, "--format");
  options.output_directory = arguments.out;
  options.template_directory = arguments.templates;
  options.builtin_template_directory = world.places.templates;
  options.json = json;
  return options;
}

// Files of the formats asked for, in --out; returns their paths.
std::vector<std::string> write_pages(const Compared& compared,
                                     const compare::PageOptions& options) {
  if (options.output_directory.empty()) return {};
  return compare::write_pages(compared.base, compared.now, compared.comparison, options);
}

// `judged`: what the text says behind the comparison. `written`: paths of pages.
void print(World& world, const ComparisonArguments& arguments, const Compared& compared,
           const nlohmann::ordered_json& json, const std::string& judged,
           const std::vector<std::string>& written) {
  if (arguments.json) {
    world.out << json_text(json);
  } else if (prints_csv(arguments)) {
    world.out << compare::to_csv(compared.comparison);
  } else {
    world.out << compare::to_text(compared.comparison, world.out_width) << judged;
    for (const auto& path : written) world.out << path << "\n";
  }
}

// `peakbench compare`: one run against another. Says what differs and judges nothing.

constexpr const char* kCompareFooter = R"(Examples:
  peakbench compare results/main results/change
  peakbench compare history:main@latest results/change --json
  peakbench compare results/main results/change --out comparison
  peakbench compare results/main results/change --format markdown --out . --reserved 20MiB
Cases are matched by id. Cases of different cards are marked and not compared.
Exit codes: 0 compared, whatever differs (`peakbench gate` judges); 2 a run cannot be read, both runs are
the same, no case is in both, or a page cannot be written.)";

int show(World& world, const ComparisonArguments& arguments) {
  const auto compared = compare_runs(arguments, compare::Pairing::of_programs);
  const auto json = compare::to_json(compared.comparison);
  const auto written = write_pages(compared, page_options(world, arguments, json));
  print(world, arguments, compared, json, "", written);
  return kDone;
}

// `peakbench gate`: a comparison judged, for continuous integration.

constexpr const char* kGateFooter = R"(Examples:
  peakbench gate results/main results/change
  peakbench gate history:main@good results/change --junit gate.xml --out comparison
  peakbench gate results/main results/change --allocated 1MiB --reserved 5% --throughput off
The policy is the table `gate` of the suite that NEW was run with (docs/how-to/compare.md). By default, one more
byte requested or allocated, at the peak or in any phase, is a regression.
Exit codes: 0 passed; 2 unusable input, a case of another card, no case to compare, or a figure that
differs under another PyTorch, driver or number of steps; 4 regression: memory or step time is worse; 5 a
case failed or is missing. If several apply: 2, then 5, then 4.)";

struct GateArguments {
  ComparisonArguments comparison;
  std::string junit, summary;
  bool allow_nothing = false;
};

// Others write to a job's summary, too: it is added to. A failure leaves it as it was.
void append(const std::string& path, const std::string& bytes) {
  const bool was_there = files::is_there(path);
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
  if (file < 0) files::cannot_write(path, errno);
  const auto size = lseek(file, 0, SEEK_END);
  const auto take_back = [&] {
    if (!was_there)
      unlink(path.c_str());
    else if (size >= 0 && ftruncate(file, size) != 0)
      return;  // no more can be done: what failed is said
  };
  try {
    files::write_all(file, bytes, path);
  } catch (const ConfigError&) {
    take_back();
    close(file);
    throw;
  }
  close(file);
}

compare::GateNote note_of(const compare::Decision& decision) {
  compare::GateNote note;
  note.passed = decision.outcome == compare::Outcome::kPassed;
  note.label = reports::spaced(to_string(decision.outcome));
  for (const auto& finding : decision.findings) note.findings.push_back(headline(finding));
  return note;
}

int judge(World& world, const GateArguments& gate) {
  const auto& arguments = gate.comparison;
  const auto compared = compare_runs(arguments, compare::Pairing::by_id);
  const auto decision = compare::decide(compared.comparison, gate.allow_nothing);
  const auto json = compare::to_json(compared.comparison, decision);
  auto options = page_options(world, arguments, json);
  options.gate = note_of(decision);
  const auto written = write_pages(compared, options);
  if (!gate.junit.empty())
    files::write_file_atomically(
        gate.junit, compare::junit(compared.comparison, decision, options.template_directory,
                                   options.builtin_template_directory));
  if (!gate.summary.empty())
    append(gate.summary, compare::render_markdown(compared.comparison, options) + "\n");
  print(world, arguments, compared, json, "\n" + compare::to_text(decision, world.out_width),
        written);
  return decision.exit_code();
}

}  // namespace

Command add_compare(CLI::App& app, World& world) {
  auto* command =
      subcommand(app, "compare", "Show what differs between two runs, and where", kCompareFooter);
  const auto arguments = std::make_shared<ComparisonArguments>();
  add_comparison_options(*command, *arguments);
  return [&world, arguments] { return show(world, *arguments); };
}

Command add_gate(CLI::App& app, World& world) {
  auto* command = subcommand(
      app, "gate", "Check a new run for regressions, for continuous integration", kGateFooter);
  const auto arguments = std::make_shared<GateArguments>();
  add_comparison_options(*command, arguments->comparison);
  add_value(*command, "--junit", arguments->junit, "Write JUnit XML with one test case per case",
            "FILE");
  command->add_flag("--allow-nothing", arguments->allow_nothing,
                    "Pass even if no case ended ok in both runs (otherwise exit code 2); the runs "
                    "must still share a case");
  add_value(*command, "--summary", arguments->summary,
            "Append the Markdown page to this file (default: $GITHUB_STEP_SUMMARY)", "FILE")
      ->envname("GITHUB_STEP_SUMMARY");
  return [&world, arguments] { return judge(world, *arguments); };
}

}  // namespace peakbench::cli
