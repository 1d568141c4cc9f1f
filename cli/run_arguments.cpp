#include "cli/run_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/errors.h"
#include "cli/program_words.h"
#include "cli/python_program.h"
#include "launch/devices.h"
#include "records/device.h"

namespace peakbench::cli {
namespace {

using records::Axis;

void add_case_options(CLI::App& command, RunArguments& arguments, const std::set<Axis>& without) {
  for (const auto* row : records::asked_axes())
    if (!without.contains(row->axis)) add_axis_option(command, *row, arguments.cases);
}

void add_measuring_options(CLI::App& command, RunArguments& arguments) {
  add_number(command, "--steps", arguments.steps, "Measured steps of a worker (default 3)", 1,
             planning::kMostSteps);
  add_number(command, "--warmup", arguments.warmup, "Steps before timing starts (default 1)", 0,
             planning::kMostSteps);
  add_number(command, "--repetitions", arguments.repetitions,
             "Rounds of timing, with one throughput worker per case (default 3; "
             "below 3: no interval; 0: memory only)",
             0, planning::kMostRepetitions);
  add_number(command, "--timeout", arguments.timeout_s,
             "Time limit of a worker process, in seconds (default 3600)", 1,
             planning::kMostSeconds);
  add_value(command, "--memory-limit", arguments.memory_limit,
            "Limit for a worker's CPU tensors: 12GiB, 800MiB, or bytes (default: available "
            "memory less a margin)",
            "SIZE");
  add_jobs(command, arguments.jobs,
           "Memory workers at a time, on emulated cards or on several real cards");
  add_number(command, "--threads", arguments.threads,
             "Threads of a worker (default: LibTorch's default)", 1, planning::kMostThreads);
  add_value(command, "--seed", arguments.seed, "Seed of the weights and the batch (default 0)", "N")
      ->check(whole_number(0));
  command.add_flag(
      "--no-ablation", arguments.no_ablation,
      "On an emulated card, do not add cases that show what each part of a stack saves");
  // What `check` runs with.
  add_repeated(command, "--check-promise", arguments.checked_promises,
               "Compare each stack with the stack without this strategy", "STRATEGY")
      ->group("");
}

void add_cuda_options(CLI::App& command, RunArguments& arguments) {
  for (auto* option :
       {add_value(command, "--card", arguments.card,
                  "Emulated card for --device auto if there is no real card (default h100-80gb)",
                  "CARD"),
        add_assume(
            command, arguments.assume,
            "Sizes that depend on unknown values: no rows (lower bound) or all rows (upper bound)"),
        add_on_off(command, "--cudnn", arguments.cudnn, "Use cuDNN: on (PyTorch's default) or off"),
        add_on_off(
            command, "--tf32", arguments.tf32,
            "Use TF32 in cuBLAS and cuDNN (default: off in cuBLAS, on in cuDNN, as in PyTorch)"),
        add_on_off(command, "--deterministic", arguments.deterministic,
                   "Use deterministic algorithms only")})
    option->group("CUDA, real or emulated (docs/how-to/emulate.md)");
}

void add_plugin_folders(CLI::App& command, RunArguments& arguments) {
  add_repeated(command, "--plugins", arguments.plugins,
               "Folder with more plugins, in addition to $PEAKBENCH_PLUGINS and the suite's (can "
               "be repeated)",
               "DIR");
}

void add_requirements(CLI::App& command, RunArguments& arguments) {
  add_value(command, "--requirements", arguments.requirements,
            "For programs with --torch: requirements file for pip; its packages are "
            "installed next to each PyTorch, without dependencies",
            "FILE")
      ->check(CLI::ExistingFile);
}

void add_result_options(CLI::App& command, RunArguments& arguments) {
  add_value(command, "-o,--out", arguments.out,
            "Folder of the results (default: results/TITLE-TIME)", "DIR");
  auto* resume = command.add_flag("--resume", arguments.resume,
                                  "Continue the run in --out: keep finished cases, run the others");
  command.add_flag("--overwrite", arguments.overwrite, "Delete the run in --out first")
      ->excludes(resume);
  add_plugin_folders(command, arguments);
  add_value(command, "--templates", arguments.templates,
            "Folder with report templates that replace the bundled ones, file by file", "DIR");
  command.add_flag("--dry-run", arguments.dry_run,
                   "Show the cases, their ids and conflicts without running them");
  command.add_flag("--json", arguments.json,
                   "Print only run.json; with --dry-run, the plan as JSON");
  command.add_flag("--no-report", arguments.no_report, "Write run.json and traces only");
  command.add_flag("-q,--quiet", arguments.quiet, "Print errors only");
}

// Of every command that makes a run.
void add_common_options(CLI::App& command, RunArguments& arguments, const std::set<Axis>& without) {
  add_case_options(command, arguments, without);
  add_measuring_options(command, arguments);
  add_cuda_options(command, arguments);
  add_result_options(command, arguments);
}

template <class Value>
void replace(Value& value, const std::optional<Value>& typed) {
  if (typed) value = *typed;
}

// What stands for a line without a suite.
void complete_typed(planning::Request& request) {
  if (request.lists.at(Axis::kModel).empty())
    throw ConfigError(
        "no model was named: give --model NAME (`peakbench list models` shows them) or a suite "
        "file");
  if (auto& strategies = request.lists.at(Axis::kStrategy); strategies.empty())
    strategies = {"baseline"};
}

// What says how a plugin's case is made or timed is nothing that a function in Python would notice.
void check_for_python(const RunArguments& arguments) {
  const std::vector<std::pair<const char*, bool>> others{
      {"--warmup", arguments.warmup.has_value()},
      {"--repetitions", arguments.repetitions.has_value()},
      {"--threads", arguments.threads.has_value()},
      {"--cudnn", !arguments.cudnn.empty()},
      {"--tf32", !arguments.tf32.empty()},
      {"--deterministic", !arguments.deterministic.empty()},
      {"--plugins", !arguments.plugins.empty()}};
  for (const auto& [option, is_typed] : others)
    if (is_typed) refuse_for_python(option, arguments.program);
}

// Without a card, on the CPU.
void take_program(const RunArguments& arguments, planning::Request& request) {
  check_for_python(arguments);
  take_python_program(arguments.program, arguments.cases, request);
  const auto& devices = arguments.cases.at(Axis::kDevice);
  if (!arguments.card.empty() && devices.empty())
    request.lists[Axis::kDevice] = {records::emulated_device(arguments.card)};
}

// A program of the user's, on an emulated card unless a device was named.
void take_command(const RunArguments& arguments, planning::Request& request) {
  request.programs = {program_of(arguments.command, "behind --")};
  const auto& program = request.programs.front();
  planning::check_is_there(program, planning::cases_of(program).front());
  if (arguments.cases.at(Axis::kDevice).empty())
    request.lists[Axis::kDevice] = {
        records::emulated_device(arguments.card.empty() ? launch::kDefaultCard : arguments.card)};
  for (const auto& device : request.lists[Axis::kDevice])
    if (records::recorded_device(device).kind != records::DeviceKind::kEmulated)
      throw ConfigError(fmt::format(
          "--device {}: with several releases of PyTorch, programs run on emulated cards only, "
          "because these installations lack NVIDIA's packages; name a card with --card",
          device));
  request.title = program.name;
}

void check_card(const std::string& card, const std::vector<std::string>& devices) {
  if (card.empty() || std::ranges::count(devices, "auto") != 0) return;
  throw ConfigError(fmt::format(
      "--card {} says which emulated card --device auto takes, and the device is {}; give --device "
      "auto, or --device {}",
      card, fmt::join(devices, " and "), records::emulated_device(card)));
}

}  // namespace

void add_run_options(CLI::App& command, RunArguments& arguments) {
  add_value(command, "suite", arguments.suite,
            "Suite to run: a TOML file (docs/reference/suites.md) or the name of a bundled suite",
            "SUITE");
  add_python_program(command, arguments.program)->excludes("suite");
  add_requirements(command, arguments);
  add_second_guess(command, arguments.second_guesses);
  add_slurm_options(command, arguments.slurm);
  add_common_options(command, arguments, {});
}

void add_releases_options(CLI::App& command, RunArguments& arguments) {
  add_requirements(command, arguments);
  add_second_guess(command, arguments.second_guesses);
  add_common_options(command, arguments, {Axis::kBuild, Axis::kRanks});
}

void add_ab_options(CLI::App& command, RunArguments& arguments) {
  add_common_options(command, arguments, {Axis::kTorch, Axis::kBuild, Axis::kRanks});
  command.get_option("--steps")->description("Timed steps of each process (default 10)");
  command.get_option("--warmup")->description("Steps before timing starts (default 3)");
  command.get_option("--repetitions")->group("");
  add_number(command, "--pairs", arguments.repetitions,
             "Pairs of processes: rounds of timing (default 20)", 1, planning::kMostRepetitions);
}

void add_one_case_options(CLI::App& command, RunArguments& arguments) {
  add_case_options(command, arguments, {Axis::kRanks});
  add_measuring_options(command, arguments);
  add_cuda_options(command, arguments);
  add_plugin_folders(command, arguments);
}

planning::Request make_request(const RunArguments& arguments) {
  planning::Request request;
  if (is_script(arguments.suite))
    throw ConfigError(fmt::format(
        "{0} is a script, and `run` takes a suite or --model: peakbench {0}", arguments.suite));
  if (!arguments.suite.empty()) request = planning::read_suite(arguments.suite);
  take_typed(arguments.cases, request);
  replace(request.steps, arguments.steps);
  replace(request.warmup, arguments.warmup);
  replace(request.repetitions, arguments.repetitions);
  replace(request.timeout_s, arguments.timeout_s);
  replace(request.threads, arguments.threads);
  replace(request.seed, arguments.seed);
  if (!arguments.memory_limit.empty())
    request.memory_limit_bytes = bytes_from(arguments.memory_limit, "--memory-limit");
  request.assume = arguments.assume;
  request.second_guesses = arguments.second_guesses;
  if (arguments.no_ablation) request.ablation = false;
  request.checked_promises = arguments.checked_promises;
  auto& options = request.device_options;
  if (!arguments.cudnn.empty()) options["cudnn"] = arguments.cudnn;
  if (!arguments.tf32.empty()) options["tf32"] = arguments.tf32;
  if (!arguments.deterministic.empty()) options["deterministic"] = arguments.deterministic;
  if (!arguments.program.empty())
    take_program(arguments, request);
  else if (!arguments.command.empty())
    take_command(arguments, request);
  else if (arguments.suite.empty())
    complete_typed(request);
  if (request.second_guesses > 0 && request.programs.empty())
    throw ConfigError(
        "--second-guess runs programs again, and no case of this run is a program; leave it out");
  if ((arguments.program.empty() && arguments.command.empty()) ||
      !arguments.cases.at(Axis::kDevice).empty())
    check_card(arguments.card, request.lists.at(Axis::kDevice));
  const auto& models = request.lists.at(Axis::kModel);
  if (request.title.empty())
    request.title = models.empty() ? "run" : fmt::format("{}", fmt::join(models, " and "));
  return request;
}

}  // namespace peakbench::cli
