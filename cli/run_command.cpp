// `peakbench run`: from arguments to a run folder and its report.
#include "cli/run_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <system_error>

#include "base/errors.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "cli/builds.h"
#include "cli/commands.h"
#include "cli/measure.h"
#include "cli/plugins.h"
#include "cli/progress.h"
#include "cli/python_program.h"
#include "cli/rows.h"
#include "cluster/scheduled_run.h"
#include "cluster/slurm.h"
#include "cluster/submission.h"
#include "launch/devices.h"
#include "launch/interrupt.h"
#include "launch/run_folder.h"
#include "launch/session.h"
#include "records/axes.h"
#include "records/device.h"
#include "records/torch_variables.h"
#include "reports/run/report.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const Places& places) {
  return fs::path(places.templates).parent_path() / "suites";
}

using records::Status;

constexpr const char* kRunFooter = R"(Examples:
  peakbench run --model vit-l-16 --strategy baseline --strategy fused-in-backward+checkpointing
  peakbench run --model qwen2.5-0.5b,layers=4 --seq 256,512 --strategy baseline --strategy lora,rank=16
  peakbench run tutorial --out results/tutorial
  peakbench run tutorial --out results/tutorial --resume
  peakbench run tutorial --dry-run
  peakbench run --program hf:llama-3.1-8b --dtype bf16 --seq 2048 --card h100-80gb
  peakbench run --program bench.py:tiny --batch 8,64 --card h100-80gb

Options on the command line replace the suite's options. A comma separates values, unless a value has
options (NAME,key=value): repeat the option then.
Exit codes: 0 done, whatever the outcomes of the cases; 2 unusable input, or every case conflicts; 3 no
case ended ok; 130 interrupted, a report of what was measured is written.)";

int exit_code(const records::Run& run) {
  if (run.status == "interrupted") return kInterrupted;
  const auto all = [&](auto test) {
    return std::ranges::all_of(run.cases, [&](const records::CaseResult& one) {
      return !one.added_for.empty() || test(one.status);
    });
  };
  if (all([](Status status) { return status == Status::kConflict; })) return kUnusableInput;
  return all([](Status status) { return status != Status::kOk; }) ? kEveryCaseFailed : kDone;
}

bool has_card(const planning::Plan& plan) {
  return std::ranges::any_of(plan.cases, [](const planning::PlannedCase& one) {
    return !one.program && records::device_from(one.spec.device).caching_allocator;
  });
}

class RunCommand {
 public:
  RunCommand(World& world, const RunArguments& arguments) : world_(world), arguments_(arguments) {}

  int go() {
    auto request = make_request(arguments_);
    const auto builds = builds_of(request);
    if (arguments_.slurm.is_asked() && !request.programs.empty())
      throw ConfigError(fmt::format(
          "{}: programs of a suite run on this machine: run it without --executor slurm "
          "(in a job of yours, where a node is to do it), or take `programs` out",
          request.suite_file.empty() ? request.programs.front().where : request.suite_file));
    if (arguments_.slurm.is_asked() && builds.size() > 1)
      throw ConfigError(
          "--executor slurm: a run on other machines has one worker; run each release of PyTorch "
          "and each build separately, and compare the runs with `peakbench compare`");
    ask_python(world_, request);
    const auto plan = planning::make_plan(request, builds);
    check_slurm_arguments(arguments_.slurm);
    if (launch::nothing_to_run(plan)) return say_nothing_to_run(plan);
    if (arguments_.dry_run) {
      const bool shows_script = !arguments_.json && arguments_.slurm.is_asked();
      world_.out << (shows_script ? script_of(plan) : cases_text(plan));
      return kDone;
    }
    warn_of_inherited_settings(plan);
    return run(plan, builds.front().plugins);
  }

 private:
  std::vector<planning::Build> builds_of(const planning::Request& request) {
    const BuildOptions options{.plugins = arguments_.plugins,
                               .requirements = arguments_.requirements,
                               .installs = !arguments_.dry_run,
                               .devices = [this](const planning::Worker& worker) {
                                 return arguments_.slurm.is_asked()
                                            ? launch::device_hook_for_others(worker)
                                            : launch::device_hook(arguments_.card, worker);
                               }};
    return builds_for(world_, request, options);
  }

  std::string cases_text(const planning::Plan& plan) {
    const auto folders = named_folders(arguments_.plugins, plan.request.plugins);
    return arguments_.json ? plan_as_json(plan, folders) : plan_as_text(plan, folders);
  }

  // A dry run ends as the run would.
  int say_nothing_to_run(const planning::Plan& plan) {
    world_.err << "peakbench: nothing can run: every case has an outcome without running\n";
    if (arguments_.dry_run)
      world_.out << cases_text(plan);
    else
      world_.err << plan_as_text(plan);
    return kUnusableInput;
  }

  // A run says all that decides its figures: what somebody's shell sets is none of it.
  void warn_of_inherited_settings(const planning::Plan& plan) {
    if (!has_card(plan) || arguments_.quiet) return;
    const auto warn_of = [&](const char* name, const char* instead) {
      if (const char* value = std::getenv(name))
        world_.err << fmt::format("warning: {}={} in the environment is not used; {}\n", name,
                                  printable(value), instead);
    };
    for (const char* name : records::kAllocatorVariables)
      warn_of(name, "--allocator sets the allocator of cases");
    for (const char* name : records::kLibraryVariables)
      warn_of(name, "cases have PyTorch's default");
  }

  std::string place_of(const planning::Plan& plan) const {
    return arguments_.out.empty() ? folder_for(plan.request.title) : arguments_.out;
  }

  // What would be submitted; what would be run stands in the plan, with --json.
  std::string script_of(const planning::Plan& plan) {
    const auto place = place_of(plan);
    std::optional<records::Run> held;
    if (arguments_.resume && files::is_there((fs::path(place) / "run.json").string()))
      held = launch::read_matching_run(place, plan);
    return cluster::first_script(plan, place, scheduled_options(arguments_.slurm, {}).submit,
                                 held ? &*held : nullptr);
  }

  // What jobs of earlier calls measure is not mixed with what is measured here, nor taken for what
  // comes after --overwrite.
  void leave_to_jobs(const launch::RunFolder& folder) {
    if (cluster::submissions_in(folder.path()).empty()) return;
    folder.refuse_links();  // nothing is deleted of a run that is refused then
    if (!arguments_.resume || !arguments_.slurm.is_asked()) check_jobs_ended(folder.path());
    if (arguments_.overwrite) cluster::remove_submissions(folder.path());
  }

  void check_jobs_ended(const std::string& folder) {
    if (!cluster::Slurm::is_here()) {
      world_.err << fmt::format(
          "warning: a job was submitted for {}; there is no sbatch on PATH to check whether it "
          "still runs\n",
          printable(folder));
      return;
    }
    cluster::Slurm slurm;
    if (const auto jobs = cluster::live_jobs(folder, slurm); !jobs.empty())
      throw ConfigError(fmt::format(
          "job {} still measures for {}. Wait for it with --executor slurm --resume, or "
          "end it first: scancel {}",
          jobs, printable(folder), jobs));
  }

  // Without a runner, on the machines of a scheduler.
  records::Run measure(const planning::Plan& plan, const launch::RunFolder& folder,
                       const launch::SessionOptions& options, launch::Runner* runner) {
    // Its end takes the status lines off the screen.
    const auto progress = make_progress(said(), world_.err, world_.screen, arguments_.quiet,
                                        std::chrono::steady_clock::now,
                                        runner == nullptr ? world_.line_width : kUnbroken);
    if (runner != nullptr) return launch::run_plan(plan, folder, options, *runner, *progress);
    cluster::Slurm slurm;
    auto scheduled = scheduled_options(arguments_.slurm, options);
    scheduled.asks_to_cancel = [this](const std::string& jobs) { return asks_to_cancel(jobs); };
    return cluster::run_scheduled(plan, folder, scheduled, slurm, *progress);
  }

  // Nobody who could answer: the tasks go on, and --resume takes what they measure.
  bool asks_to_cancel(const std::string& jobs) {
    if (isatty(STDIN_FILENO) == 0) {
      world_.err << fmt::format("{} continues; scancel ends it, --resume collects its results.\n",
                                jobs);
      return false;
    }
    world_.err
        << fmt::format(
               "Cancel {}? Otherwise it continues, and --resume collects its results. [y/N] ", jobs)
        << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "Y" || answer == "yes";
  }

  int run(const planning::Plan& plan, const planning::Found& plugins) {
    launch::SessionOptions options;
    options.resume = arguments_.resume;
    options.overwrite = arguments_.overwrite;
    options.command = without_environment(world_.typed);

    // Before the work, not after it.
    if (!arguments_.no_report) reports::check_report(report_options(place_of(plan)));
    const auto runner = arguments_.slurm.is_asked() ? nullptr : world_.make_runner(plan);
    const auto place =
        arguments_.out.empty() ? make_folder_for(plan.request.title) : arguments_.out;
    // Until the report is written: of a run that another overwrites there is none to be made.
    const launch::RunFolder folder(place);
    leave_to_jobs(folder);
    const launch::InterruptScope interrupts;
    complete(options, plugins, arguments_.jobs);
    const auto run = measure(plan, folder, options, runner.get());
    if (run.status == "interrupted") say_interrupted(run, place);
    say_not_measured(run, place);
    if (!arguments_.no_report) report(run, place);
    if (arguments_.json) world_.out << json_text(to_json(run));
    return exit_code(run);
  }

  void say_interrupted(const records::Run& run, const std::string& folder) {
    const auto count = plan_size(run);
    world_.err << fmt::format(
        "Interrupted: {} of {} cases are done; what was measured is kept. The same command with "
        "--out {} --resume continues.\n",
        count - run.pending.size(), count, folder);
  }

  // The same words whether the run was interrupted or not: these cases have a row, and no figures.
  void say_not_measured(const records::Run& run, const std::string& folder) {
    const auto count =
        std::ranges::count(run.cases, Status::kHostFailure, &records::CaseResult::status);
    if (count == 0) return;
    world_.err << fmt::format(
        "Not measured, as the machine failed {}: {} of {} cases. Fix what their rows say; the same "
        "command with --out {} --resume runs them again.\n",
        count == 1 ? "it" : "them", count, plan_size(run), folder);
  }

  static std::size_t plan_size(const records::Run& run) {
    std::set<std::string> ids(run.pending.begin(), run.pending.end());
    for (const auto& one : run.cases) ids.insert(one.spec.id);
    return ids.size();
  }

  reports::ReportOptions report_options(const std::string& folder) const {
    auto options = own_report(world_, folder);
    options.template_directory = arguments_.templates;
    return options;
  }

  // With --json, standard output is for run.json alone.
  std::ostream& said() const { return arguments_.json ? world_.err : world_.out; }

  void report(const records::Run& run, const std::string& folder) {
    if (!arguments_.quiet && !run.cases.empty())
      said() << "\n" << reports::main_table(run, world_.out_width, folder) << std::flush;
    std::vector<std::string> written;
    try {
      written = reports::write_reports({folder}, report_options(folder));
    } catch (const ConfigError& error) {
      throw report_not_written(
          error.what(), fmt::format("Everything measured is in {}/run.json", folder), folder);
    }
    if (arguments_.quiet) return;
    said() << fmt::format("\nResults: {}/run.json\n", folder);
    for (const auto& path : written)
      if (fs::path(path).extension() != ".svg") said() << fmt::format("Report:  {}\n", path);
    said() << std::flush;
  }

  World& world_;
  const RunArguments& arguments_;
};

}  // namespace

std::string bundled_suite(const Places& places, const std::string& name) {
  return (folder_of(places) / (name + ".toml")).string();
}

std::string suite_file(const Places& places, const std::string& typed) {
  constexpr std::size_t kLongestName = 64;
  if (typed.empty() || typed.size() > kLongestName ||
      typed.find_first_of("/.") != std::string::npos)
    return typed;
  const bool is_there = files::is_there(typed);
  const bool holds_run = files::is_there((fs::path(typed) / "run.json").string());
  if (is_there && (holds_run || !files::is_folder(typed))) return typed;
  if (const auto bundled = bundled_suite(places, typed); files::is_there(bundled)) return bundled;
  if (is_there) return typed;  // a folder: what it lacks is said where it is read
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder_of(places), none))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  throw ConfigError(fmt::format("{}: there is no such file, and no such suite; bundled are {}",
                                printable(typed), fmt::join(names, ", ")));
}

int run_cases(World& world, const RunArguments& arguments) {
  return RunCommand(world, arguments).go();
}

Command add_run(CLI::App& app, World& world) {
  auto* command = subcommand(app, "run", "Measure cases and write a report", kRunFooter);
  const auto arguments = std::make_shared<RunArguments>();
  add_run_options(*command, *arguments);
  return [&world, arguments] {
    arguments->suite = suite_file(world.places, arguments->suite);
    return run_cases(world, *arguments);
  };
}

}  // namespace peakbench::cli
