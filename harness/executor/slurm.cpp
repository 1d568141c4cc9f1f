#include "executor/slurm.h"

#include <fmt/format.h>

#include <chrono>
#include <sstream>
#include <utility>
#include <vector>

#include "errors/errors.h"
#include "executor/slurm_words.h"
#include "executor/tasks.h"
#include "launch/interrupt.h"
#include "process/command.h"
#include "process/find_program.h"
#include "text/printable.h"

namespace peakbench::executor {
namespace {

using process::CommandSaid;

// An order of the user's to every job of theirs (SBATCH_PARTITION) or to every look at them
// (SQUEUE_STATES) is none to this one: what is asked for stands in the script.
const std::vector<std::string> kOthersOrders{"SBATCH_", "SQUEUE_", "SACCT_", "SLURM_TIME_FORMAT",
                                             "SCANCEL_"};

// The controller of a large machine takes its time.
constexpr auto kPatience = std::chrono::seconds(60);

// An order to Slurm: once given, its answer is waited for.
CommandSaid ordered(std::vector<std::string> arguments) {
  return process::ask_command(
      {.arguments = std::move(arguments), .patience = kPatience, .without = kOthersOrders});
}

CommandSaid asked(std::vector<std::string> arguments) {
  return process::ask_command({.arguments = std::move(arguments),
                               .patience = kPatience,
                               .without = kOthersOrders,
                               .cancelled = launch::interrupted});
}

// Of a program that failed: its words without its own name before each line.
std::string words_of(const CommandSaid& said, const std::string& program) {
  if (!said.start_error.empty()) return said.start_error;
  if (said.stopped == process::Stop::kTimeout)
    return fmt::format("no answer within {} s", kPatience.count());
  if (said.stopped == process::Stop::kOutput) return "it printed too much";
  std::istringstream lines(said.err.empty() ? said.out : said.err);
  std::string words;
  for (std::string line; std::getline(lines, line);) {
    if (const auto own = program + ": error: "; line.starts_with(own)) line.erase(0, own.size());
    if (!trimmed(line).empty()) words += (words.empty() ? "" : "; ") + trimmed(line);
  }
  return printable(words.empty() ? fmt::format("exit code {}", said.exit_code) : words);
}

}  // namespace

bool Slurm::is_here() { return process::find_program("sbatch").has_value(); }

Slurm::Slurm() {
  if (!is_here())
    throw ConfigError(
        "--executor slurm: there is no sbatch on PATH. Run this where jobs are submitted (a login "
        "node), or leave --executor out to run here.");
}

std::string Slurm::submit(const std::string& script_path) {
  const auto said = ordered({"sbatch", "--parsable", script_path});
  if (!said.ok())
    throw ConfigError(fmt::format("sbatch refused the job: {}. The script is {}.",
                                  words_of(said, "sbatch"), script_path));
  const auto job = job_from(said.out);
  if (job.empty())
    throw ConfigError(fmt::format("sbatch printed no job number, but: {}", printable(said.out)));
  return job;
}

std::optional<std::string> Slurm::job_of(const std::string& script_path) {
  // All states: which of them are no end is known here, and not every Slurm has the same.
  const auto said = asked({"squeue", "--noheader", "--me", "--states=all", "--format=%F|%T|%o"});
  if (!said.ok()) return std::nullopt;
  return live_job_from(said.out, script_path);
}

std::optional<std::map<std::size_t, TaskSeen>> Slurm::states(const std::string& job,
                                                             std::size_t tasks) {
  const auto said = asked(
      {"squeue", "--noheader", "--array", "--states=all", "--jobs=" + job, "--format=%i|%T|%R"});
  const bool forgotten = said.err.find("Invalid job id") != std::string::npos;
  if (!said.ok() && !forgotten) return std::nullopt;
  auto states = states_from(said.out, job, kMostTasks);
  if (states && states->size() < tasks) {
    add_from_accounting(job, *states);
    if (launch::interrupted())
      return std::nullopt;  // tasks that were not asked for are not unknown
  }
  return states;
}

// Tasks that ended a few minutes ago are in Slurm's accounting alone, where it has some.
void Slurm::add_from_accounting(const std::string& job, std::map<std::size_t, TaskSeen>& states) {
  if (!has_accounting_) return;
  const auto said = asked({"sacct", "--noheader", "--parsable2", "--delimiter=|", "--allocations",
                           "--array", "--jobs=" + job, "--format=JobID,State,NodeList"});
  if (said.err.find("accounting storage is disabled") != std::string::npos ||
      !said.start_error.empty())
    has_accounting_ = false;
  if (!said.ok()) return;
  if (auto ended = states_from(said.out, job, kMostTasks)) states.merge(*ended);
}

std::optional<int> Slurm::restarts(const std::string& job, std::size_t task) {
  const auto said = asked({"scontrol", "show", "job", fmt::format("{}_{}", job, task)});
  return said.ok() ? restarts_from(said.out) : std::nullopt;
}

std::string Slurm::cancel(const std::string& job) {
  const auto said = ordered({"scancel", job});
  return said.ok() ? "" : words_of(said, "scancel");
}

}  // namespace peakbench::executor
