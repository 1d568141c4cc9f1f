#include "cli/slurm_arguments.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/errors.h"
#include "cli/option_values.h"

namespace peakbench::cli {
namespace {

constexpr const char* kGroup = "Where cases run (docs/how-to/slurm.md)";
constexpr std::int64_t kMostTasks = 1'000'000, kMostCpus = 4096, kMostDelay_s = 3600;

}  // namespace

void add_slurm_options(CLI::App& command, SlurmArguments& arguments) {
  auto& slurm = arguments.slurm;
  add_value(command, "--executor", arguments.executor,
            "Where to run: local (this machine, default) or slurm (as an array of jobs)",
            "local|slurm")
      ->check(one_of({"local", "slurm"}))
      ->group(kGroup);
  const auto note = [&](CLI::Option* option, const std::string& name) {
    option->group(kGroup)->each(
        [at = &arguments.only_slurm, name](const std::string&) { *at = name; });
  };
  const auto number = [&](const std::string& name, std::int64_t& value, const std::string& words,
                          std::int64_t most) {
    note(add_number(command, name, value, words, 1, most), name);
  };
  for (const auto& [option, value, words] : cluster::kSlurmTexts)
    note(add_value(command, option, slurm.*value, words, "TEXT"), option);
  number("--cpus-per-task", slurm.cpus_per_task,
         "Processors of a task, and its cases on emulated cards at a time (default 1)", kMostCpus);
  number("--at-once", slurm.at_once, "Tasks to run at a time (default: as many as Slurm allows)",
         kMostTasks);
  number("--cases-per-task", arguments.cases_per_task,
         "Maximum cases on emulated cards in a task (default 32); timed cases of one table are "
         "always one task",
         kMostTasks);
  note(add_value(command, "--prefix", slurm.prefix,
                 "Command prefix in each task: \"apptainer exec --nv image.sif\"", "TEXT"),
       "--prefix");
  number("--shared-delay", arguments.shared_delay_s,
         "Time until files of other machines are visible here, in seconds (default 60)",
         kMostDelay_s);
}

void check_slurm_arguments(const SlurmArguments& arguments) {
  if (!arguments.is_asked() && !arguments.only_slurm.empty())
    throw ConfigError(fmt::format("{} is for --executor slurm; this run is on this machine",
                                  arguments.only_slurm));
  check_options(arguments.slurm);
}

cluster::ScheduledOptions scheduled_options(const SlurmArguments& arguments,
                                            const launch::SessionOptions& session) {
  cluster::ScheduledOptions options;
  static_cast<launch::SessionOptions&>(options) = session;
  options.submit.slurm = arguments.slurm;
  options.submit.dealing.cases_a_task = static_cast<std::size_t>(arguments.cases_per_task);
  options.pace.settle = std::chrono::seconds(arguments.shared_delay_s);
  std::error_code ignored;
  options.submit.program = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  return options;
}

}  // namespace peakbench::cli
