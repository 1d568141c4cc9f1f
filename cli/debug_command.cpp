// `peakbench debug`: the worker of one case under a debugger.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/errors.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "cli/builds.h"
#include "cli/commands.h"
#include "cli/named_case.h"
#include "cli/option_values.h"
#include "cli/run_arguments.h"
#include "cli/run_command.h"
#include "cli/worker.h"
#include "host/command.h"
#include "launch/case.h"
#include "launch/devices.h"
#include "launch/worker_process.h"
#include "records/run.h"
#include "records/run_files.h"
#include "reports/render/text.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDebugFooter = R"(Examples:
  peakbench debug --plugins build/mine --model vit-b-16 --strategy my-strategy
  peakbench debug --model vit-b-16 --strategy lora --device emulated:h100-80gb -- -ex run -ex backtrace
  peakbench debug results/mine vit-b-16/my-strategy/cpu/fp32/b1
  peakbench debug suites/mine.toml vit-b-16/my-strategy/cpu/fp32/b1 --debugger lldb

Give the case as to `peakbench run`, or by the folder of a run. If that makes several cases, add the id of
one, the name of its folder, or a stack that only it has. Arguments after -- go to the debugger. The worker
gets the same environment variables as in `peakbench run`, including the emulated card's variables. It has not
started: set breakpoints and type `run`. Build your plugin with -DCMAKE_BUILD_TYPE=RelWithDebInfo to see its
source lines.
Exit codes: the debugger's; 2 no such case, or no debugger.)";

struct DebugArguments {
  RunArguments run;  // its suite may be the folder of a run
  std::string wanted, debugger = "gdb", out;
};

// The one that is meant, of things with a `spec`.
template <typename Case>
const Case& choose(const std::vector<Case>& cases, const std::string& wanted,
                   const std::string& where) {
  std::vector<const Case*> meant;
  std::vector<std::string> ids;
  for (const auto& one : cases) {
    if (wanted.empty() || is_called(one.spec, wanted)) meant.push_back(&one);
    ids.push_back(one.spec.id);
  }
  if (meant.empty())
    throw ConfigError(fmt::format("{}no case \"{}\"{}", where, wanted, suggestion(wanted, ids)));
  if (meant.size() == 1) return *meant.front();
  std::string list;
  for (const auto* one : meant) list += "\n  " + one->spec.id;
  throw ConfigError(fmt::format("{}say which of these cases, by its id:{}", where, list));
}

BuildOptions build_options(const RunArguments& run) {
  return {
      .plugins = run.plugins, .installs = false, .devices = [&run](const planning::Worker& worker) {
        return launch::device_hook(run.card, worker);
      }};
}

// The one that the run measured the case with, unless another was named.
planning::Worker worker_for_case(World& world, const RunArguments& run,
                                 const records::CaseSpec& spec) {
  planning::Request request;
  for (const auto& [axis, texts] : run.cases) request.lists[axis] = texts;
  auto &releases = request.lists[records::Axis::kTorch],
       &folders = request.lists[records::Axis::kBuild];
  if (!spec.build.empty() && folders.empty())
    throw ConfigError(
        fmt::format("{}: its run has several builds; name its folder: --build DIR", spec.id));
  if (!spec.torch.empty() && releases.empty() && folders.empty()) releases = {spec.torch};
  return *builds_for(world, request, build_options(run)).front().worker;
}

// Nothing of a run is written over.
std::string job_folder(const std::string& out) {
  if (!out.empty()) {
    files::make_folder(out);
    return out;
  }
  auto path = (fs::temp_directory_path() / "peakbench-debug-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr)
    throw ConfigError(fmt::format("{}: {}", path, host_error_text(errno)));
  return path;
}

launch::WorkerOrder order_of_run(World& world, const DebugArguments& arguments) {
  const auto& run_folder = arguments.run.suite;
  const auto run = records::read_run(run_folder);
  const auto& found = choose(run.cases, arguments.wanted, run_folder + ": ");
  const auto job = (fs::path(run_folder) / records::case_folder(found.spec.slug) /
                    name_of(records::CaseFile::kMemoryJob))
                       .string();
  if (!files::is_there(job))
    throw ConfigError(
        fmt::format("{}: no job of {} was found ({}): the case did not run, or ran elsewhere. "
                    "Give the case as to `peakbench run` instead",
                    run_folder, found.spec.id, job));
  return launch::order_from_file(job, job_folder(arguments.out),
                                 worker_for_case(world, arguments.run, found.spec));
}

launch::WorkerOrder order_of_plan(World& world, const DebugArguments& arguments) {
  auto request = make_request(arguments.run);
  request.ablation = false;
  const auto builds = builds_for(world, request, build_options(arguments.run));
  const auto plan = planning::make_plan(request, builds);
  const auto& found = choose(plan.cases, arguments.wanted, "");
  if (found.decided)
    throw ConfigError(fmt::format("{} is not run: {}: {}", found.spec.id, to_string(*found.decided),
                                  found.reason));
  const launch::CaseOrder order{&found, &plan.request, job_folder(arguments.out), {}};
  return launch::make_order(order, records::JobMode::kMemory);
}

int debug(World& world, const DebugArguments& arguments) {
  if (!process::find_program(arguments.debugger))
    throw ConfigError(
        fmt::format("no debugger \"{0}\" on PATH; install it (apt-get install "
                    "gdb), or name another with --debugger",
                    arguments.debugger));
  const auto order = files::is_folder(arguments.run.suite) ? order_of_run(world, arguments)
                                                           : order_of_plan(world, arguments);
  if (order.job.program)
    throw ConfigError(fmt::format(
        "{} is a program, which has no worker to debug: put the debugger in front of its own "
        "command, such as peakbench emulate --card CARD -- gdb --args python3 train.py",
        order.job.case_id));
  if (!files::is_there(order.program))
    throw ConfigError(
        fmt::format("no worker program: {}; `peakbench doctor` says more", order.program));
  const auto& typed = world.typed;
  auto more = std::ranges::find(typed, "--");  // what stands behind it is the debugger's
  if (more != typed.end()) ++more;
  const auto command = launch::debugger_command(arguments.debugger, {more, typed.end()}, order);
  world.err << fmt::format("Case: {}\nJob:  {}\nRuns: {}\n", printable(order.job.case_id),
                           printable(order.job_path), printable(reports::shell_quoted(command)))
            << std::flush;
  launch::become(command, order);
}

}  // namespace

Command add_debug(CLI::App& app, World& world) {
  auto* command =
      subcommand(app, "debug", "Start the worker of one case under a debugger", kDebugFooter);
  const auto arguments = std::make_shared<DebugArguments>();
  add_value(*command, "suite", arguments->run.suite,
            "Suite (a TOML file or the name of a bundled one), or the folder of a run that "
            "contains the case",
            "SUITE|RUN");
  add_value(*command, "case", arguments->wanted,
            "Id of the case, or the name of its folder in cases/", "CASE");
  add_one_case_options(*command, arguments->run);
  add_value(*command, "--debugger", arguments->debugger, "Debugger: gdb (default), lldb, or a path",
            "PROGRAM");
  add_value(*command, "-o,--out", arguments->out,
            "Folder of the job, its trace and result (default: a new temporary folder)", "DIR");
  return [&world, arguments] {
    arguments->run.suite = suite_file(world.places, arguments->run.suite);
    return debug(world, *arguments);
  };
}

}  // namespace peakbench::cli
