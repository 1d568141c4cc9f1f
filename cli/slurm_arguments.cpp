#include "cli/slurm_arguments.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/one_of.h"
#include "errors/errors.h"

namespace peakbench::cli {
namespace {

constexpr const char* kGroup = "Where cases run (docs/slurm.md)";
constexpr std::int64_t kMostTasks = 1'000'000, kMostCpus = 4096, kMostDelay_s = 3600;

class Adder {
 public:
  Adder(CLI::App& command, SlurmArguments& arguments) : command_(command), arguments_(arguments) {}

  void text(const std::string& name, std::string& value, const std::string& words) {
    note(command_.add_option(name, value, words)->type_name("TEXT"), name);
  }
  void number(const std::string& name, std::int64_t& value, const std::string& words,
              std::int64_t most) {
    note(command_.add_option(name, value, words)
             ->check(CLI::Range(std::int64_t{1}, most))
             ->type_name("N"),
         name);
  }

 private:
  void note(CLI::Option* option, const std::string& name) {
    option->group(kGroup)->each(
        [at = &arguments_.only_slurm, name](const std::string&) { *at = name; });
  }

  CLI::App& command_;
  SlurmArguments& arguments_;
};

}  // namespace

void add_slurm_options(CLI::App& command, SlurmArguments& arguments) {
  auto& slurm = arguments.slurm;
  command
      .add_option("--executor", arguments.executor,
                  "local: on this machine (default); slurm: as an array of jobs")
      ->check(one_of({"local", "slurm"}))
      ->type_name("local|slurm")
      ->group(kGroup);
  Adder add(command, arguments);
  add.text("--partition", slurm.partition, "To sbatch, as the next ones are");
  add.text("--account", slurm.account, "");
  add.text("--time", slurm.time, "Of a task: minutes, hours:minutes:seconds, days-hours, ...");
  add.text("--gres", slurm.gres, "Of a task: gpu:1, gpu:a100:1, ...");
  add.text("--gpus-per-node", slurm.gpus_per_node, "");
  add.text("--qos", slurm.qos, "");
  add.text("--constraint", slurm.constraint, "");
  add.text("--mem", slurm.memory, "Memory of a task: 16G, ...");
  add.number("--cpus-per-task", slurm.cpus_per_task,
             "Processors of a task (default 1), and cases on emulated cards at a time in it",
             kMostCpus);
  add.number("--at-once", slurm.at_once, "Tasks that run at a time (default: all that Slurm lets)",
             kMostTasks);
  add.number("--cases-per-task", arguments.cases_per_task,
             "Most cases on emulated cards in a task (default 32); cases that are timed stay "
             "together, a table a task",
             kMostTasks);
  add.text("--prefix", slurm.prefix,
           "Words before the program in each task: \"apptainer exec --nv image.sif\"");
  add.number("--shared-delay", arguments.shared_delay_s,
             "Seconds that files of other machines may take to be seen here (default 60)",
             kMostDelay_s);
}

void check_slurm_arguments(const SlurmArguments& arguments) {
  if (!arguments.is_asked() && !arguments.only_slurm.empty())
    throw ConfigError(fmt::format("{} is for --executor slurm; this run is on this machine",
                                  arguments.only_slurm));
  check_options(arguments.slurm);
}

executor::ScheduledOptions scheduled_options(const SlurmArguments& arguments,
                                             const launch::SessionOptions& session) {
  executor::ScheduledOptions options;
  static_cast<launch::SessionOptions&>(options) = session;
  options.submit.slurm = arguments.slurm;
  options.submit.dealing.cases_a_task = static_cast<std::size_t>(arguments.cases_per_task);
  options.pace.settle = std::chrono::seconds(arguments.shared_delay_s);
  std::error_code ignored;
  options.submit.program = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  return options;
}

}  // namespace peakbench::cli
