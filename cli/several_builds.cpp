#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/measure.h"
#include "cli/option_values.h"
#include "cli/program_words.h"
#include "cli/run_arguments.h"
#include "cli/run_command.h"
#include "cli/worker.h"
#include "launch/worker_choice.h"
#include "planning/selection.h"
#include "records/axes.h"
#include "records/device.h"
#include "records/gate_policy.h"
#include "records/run.h"
#include "reports/analysis/timing.h"
#include "reports/compare/words.h"

namespace peakbench::cli {
// `peakbench releases`: a run with several releases of PyTorch.

namespace {

using records::Axis;

constexpr const char* kReleasesFooter = R"(Examples:
  peakbench releases --torch 2.6,2.11,newest -- python3 train.py
  peakbench releases --torch 2.11,newest --model vit-l-16 --device emulated:h100-80gb
  peakbench releases tutorial
Short for `peakbench run --torch ...`: prints a table with a row for each release, and what changed from one
release to the next. A program runs with each release in a separate environment: that PyTorch without
NVIDIA's packages, installed once by pip (1 to 2 GB each), with your other packages or those of
--requirements. Without --torch, a program runs with the environment's PyTorch and the newest release;
models run with every PyTorch that has a worker.
Exit codes: those of `run`; 2 a release cannot be installed.)";

std::vector<std::string> releases_of_programs() {
  const auto environment = launch::torch_of_environment();
  if (!environment.torch)
    throw ConfigError(fmt::format("{}: name the releases: --torch 2.6,2.11,{}",
                                  launch::about(environment), launch::kNewest));
  return {environment.torch->version, launch::kNewest};
}

// `run.command`: a program, or a suite.
int run_releases(World& world, RunArguments run) {
  const auto words = std::exchange(run.command, {});
  if (std::ranges::count(world.typed, "--") != 0 || (!words.empty() && is_script(words[0])))
    run.command = runnable(words);
  else if (words.size() > 1)
    throw ConfigError(
        fmt::format("one suite at a time, or a program after --: peakbench releases -- {}",
                    fmt::join(words, " ")));
  else if (!words.empty())
    run.suite = suite_file(world.places, words.front());
  auto& releases = run.cases[Axis::kTorch];
  if (releases.empty())
    releases = run.command.empty() ? releases_with_workers(world) : releases_of_programs();
  return run_cases(world, run);
}

// `peakbench ab`: a run of two builds, and whether the second is slower.

constexpr const char* kAbFooter = R"(Examples:
  peakbench ab build/main build/change --model vit-b-16 --strategy baseline
  peakbench ab build build --model vit-b-16 --strategy baseline --pairs 40
  peakbench ab build,plugins=old build,plugins=new --model vit-b-16 --strategy mine --gate
Short for `peakbench run --build BASE --build NEW --repetitions 20 --steps 10 --warmup 3`, with a verdict
for each case. The builds take turns, and the ratio of their median steps is compared (docs/how-to/compare.md).
`unknown` is followed by the number of further pairs that are needed.
Exit codes: 0 measured, whatever the result; 2 unusable input; 3 no case was measured; 4 with --gate: a
case is worse; 130 interrupted, what was measured is written.)";

struct AbArguments {
  std::string base, now, margin = "2%", false_alarms = "1%";
  RunArguments run;
  bool gate = false;
};

records::GatePolicy policy_of(const AbArguments& arguments) {
  records::GatePolicy policy;
  records::set_gate(policy, "throughput", arguments.margin, "--margin");
  records::set_gate(policy, "false_alarms", arguments.false_alarms, "--false-alarms");
  if (!policy.throughput) throw ConfigError("--margin: expected a part of the step, like 2%");
  return policy;
}

RunArguments run_of(const AbArguments& arguments) {
  auto run = arguments.run;
  run.cases[Axis::kBuild] = {arguments.base, arguments.now};
  run.repetitions = run.repetitions.value_or(20);
  run.steps = run.steps.value_or(10);
  run.warmup = run.warmup.value_or(3);
  run.no_ablation = true;
  if (run.out.empty()) run.out = make_folder_for("ab");
  return run;
}

// The direction, and a sentence.
std::pair<statistics::Direction, std::string> difference(const records::CaseResult& now,
                                                         const records::CaseResult& base,
                                                         const records::GatePolicy& policy) {
  for (const auto* one : {&base, &now})
    if (!one->throughput)
      return {statistics::Direction{},
              fmt::format("unknown: {} was not timed: {}", printable(one->spec.build),
                          printable(one->throughput_reason))};
  const auto found = reports::time_against(*now.throughput, *base.throughput, *policy.throughput,
                                           policy.false_alarms);
  return {found.direction,
          fmt::format("{}: {}", to_string(found.direction), compare::speed_text(found, "pairs"))};
}

// True: one is worse.
bool print_differences(std::ostream& out, const records::Run& run,
                       const records::GatePolicy& policy) {
  std::map<std::string, const records::CaseResult*> bases;
  bool worse = false;
  for (const auto& one : run.cases) {
    const auto id = planning::id_in_one_build(one.spec);
    const auto [base, is_base] = bases.emplace(id, &one);
    if (is_base) continue;
    const auto [direction, text] = difference(one, *base->second, policy);
    out << fmt::format("{}: {} ({} against {})\n", printable(id), text, printable(one.spec.build),
                       printable(base->second->spec.build));
    worse = worse || direction == statistics::Direction::kWorse;
  }
  out << std::flush;
  return worse;
}

int run_ab(World& world, const AbArguments& arguments) {
  const auto policy = policy_of(arguments);
  for (const auto& id : arguments.run.cases.at(Axis::kDevice))
    if (const auto device = records::recorded_device(id); !device.has_times)
      throw ConfigError(fmt::format("--device {}: {}; time on cpu or cuda:0", id, device.no_times));
  const auto run = run_of(arguments);
  const int code = run_cases(world, run);
  if (run.dry_run || (code != kDone && code != kInterrupted)) return code;
  const bool worse =
      print_differences(run.json ? world.err : world.out, records::read_run(run.out), policy);
  return code == kDone && worse && arguments.gate ? kRegression : code;
}

}  // namespace

Command add_releases(CLI::App& app, World& world) {
  auto* command = subcommand(app, "releases", "Compare the memory of several PyTorch releases",
                             kReleasesFooter);
  const auto arguments = std::make_shared<RunArguments>();
  add_releases_options(*command, *arguments);
  add_program(*command, arguments->command, "what",
              "Suite, or a program and its arguments after --; or use --model")
      ->type_name("SUITE|-- PROGRAM ARG");
  return [&world, arguments] { return run_releases(world, *arguments); };
}

Command add_ab(CLI::App& app, World& world) {
  auto* command = subcommand(
      app, "ab", "Test whether one build is slower than another, timing both in turn", kAbFooter);
  const auto arguments = std::make_shared<AbArguments>();
  add_value(*command, "base", arguments->base,
            "Build to compare with: an installation or build folder with bin/peakbench-worker; "
            "DIR,plugins=DIR adds plugins",
            "BASE_BUILD")
      ->required();
  add_value(*command, "new", arguments->now, "New build; the same folder twice is an A/A test",
            "NEW_BUILD")
      ->required();
  add_ab_options(*command, arguments->run);
  add_value(*command, "--margin", arguments->margin, "Slowdown to tolerate (default 2%)", "PART");
  add_value(
      *command, "--false-alarms", arguments->false_alarms,
      "Rate of false alarms: how often an equally fast build may be called worse (default 1%)",
      "PART");
  command->add_flag("--gate", arguments->gate, "Exit with code 4 if a case is worse");
  return [&world, arguments] { return run_ab(world, *arguments); };
}

}  // namespace peakbench::cli
