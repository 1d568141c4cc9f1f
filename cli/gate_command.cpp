// `peakbench gate`: a comparison judged, for continuous integration.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "cli/commands.h"
#include "cli/gate_arguments.h"
#include "errors/errors.h"
#include "files/atomic_file.h"
#include "files/file.h"
#include "json/json_text.h"
#include "reports/compare/render.h"
#include "reports/gate/gate.h"
#include "reports/render/words.h"

namespace peakbench::cli {
namespace {

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

compare::GateNote note_of(const gate::Decision& decision) {
  compare::GateNote note;
  note.passed = decision.outcome == gate::Outcome::kPassed;
  note.label = reports::spaced(to_string(decision.outcome));
  for (const auto& finding : decision.findings) note.findings.push_back(headline(finding));
  return note;
}

class GateCommand {
 public:
  GateCommand(World& world, const GateArguments& arguments)
      : world_(world), arguments_(arguments) {}

  int go() {
    const auto& arguments = arguments_.comparison;
    const auto compared = compare_runs(arguments);
    const auto decision = gate::decide(compared.comparison, arguments_.allow_nothing);
    const auto json = gate::to_json(compared.comparison, decision);
    const auto note = note_of(decision);
    const auto written = write_pages(world_, arguments, compared, note, json);
    write_junit(compared, decision);
    write_summary(compared, note);
    if (arguments.json) {
      world_.out << json_text(json);
    } else if (prints_csv(arguments)) {
      world_.out << compare::to_csv(compared.comparison);
    } else {
      world_.out << compare::to_text(compared.comparison, world_.out_width) << "\n"
                 << gate::to_text(decision, world_.out_width);
      for (const auto& path : written) world_.out << path << "\n";
    }
    return decision.exit_code();
  }

 private:
  void write_junit(const Compared& compared, const gate::Decision& decision) {
    if (arguments_.junit.empty()) return;
    files::write_file_atomically(
        arguments_.junit, gate::junit(compared.comparison, decision,
                                      arguments_.comparison.templates, world_.places.templates));
  }

  void write_summary(const Compared& compared, const compare::GateNote& note) {
    if (arguments_.summary.empty()) return;
    compare::PageOptions options;
    options.template_directory = arguments_.comparison.templates;
    options.builtin_template_directory = world_.places.templates;
    options.gate = note;
    append(arguments_.summary, compare::render_markdown(compared.comparison, options) + "\n");
  }

  World& world_;
  const GateArguments& arguments_;
};

}  // namespace

Command add_gate(CLI::App& app, World& world) {
  auto* command =
      app.add_subcommand("gate", "Check a new run for regressions, for continuous integration");
  command->footer(kGateFooter);
  const auto arguments = std::make_shared<GateArguments>();
  add_comparison_options(*command, arguments->comparison);
  command->add_option("--junit", arguments->junit, "Write JUnit XML with one test case per case")
      ->type_name("FILE");
  command->add_flag("--allow-nothing", arguments->allow_nothing,
                    "Pass even if no case ended ok in both runs (otherwise exit code 2); the runs "
                    "must still share a case");
  command
      ->add_option("--summary", arguments->summary,
                   "Append the Markdown page to this file (default: $GITHUB_STEP_SUMMARY)")
      ->envname("GITHUB_STEP_SUMMARY")
      ->type_name("FILE");
  return [&world, arguments] { return GateCommand(world, *arguments).go(); };
}

}  // namespace peakbench::cli
