#include "executor/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <sstream>
#include <string_view>

#include "errors/errors.h"
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
constexpr std::int64_t kSecondsAMinute = 60, kSecondsAnHour = 3600, kSecondsADay = 86400;
// From the signal to the end of the time. Slurm sends it up to a minute early.
constexpr std::int64_t kWarning_s = 60;
constexpr std::int64_t kShortTime_s = 300;  // where a warning of a minute is too much

CommandSaid asked(std::vector<std::string> arguments) {
  return process::ask_command(
      {.arguments = std::move(arguments), .patience = kPatience, .without = kOthersOrders});
}

std::optional<std::vector<std::int64_t>> numbers_in(std::string_view text, char separator) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(separator, at), text.size());
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data() + at, text.data() + end, number);
    constexpr std::int64_t kMost = 1'000'000;
    if (error != std::errc() || rest != text.data() + end || number < 0 || number > kMost)
      return std::nullopt;
    numbers.push_back(number);
    at = end + 1;
  }
  return numbers;
}

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(" \t\r\n");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
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

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

void check_text(const std::string& option, const std::string& text) {
  const auto bad = [](unsigned char c) { return c < ' ' || c == '"' || c == '\\' || c == 0x7f; };
  if (std::ranges::any_of(text, bad))
    throw ConfigError(fmt::format("{} holds a character that a batch script cannot: {}", option,
                                  printable(text)));
}

bool has_warning(const SlurmOptions& options) {
  const auto time = walltime_seconds(options.time);
  return !time || *time == 0 || *time >= kShortTime_s;
}

struct Word {
  std::string_view word;
  TaskState state;
};
// squeue's and sacct's long words; CF, CG and such are never asked for.
constexpr std::array kWords{Word{"PENDING", TaskState::kWaiting},
                            Word{"CONFIGURING", TaskState::kWaiting},
                            Word{"REQUEUED", TaskState::kWaiting},
                            Word{"REQUEUE_FED", TaskState::kWaiting},
                            Word{"REQUEUE_HOLD", TaskState::kWaiting},
                            Word{"RESV_DEL_HOLD", TaskState::kWaiting},
                            Word{"SPECIAL_EXIT", TaskState::kWaiting},
                            Word{"RUNNING", TaskState::kRunning},
                            Word{"COMPLETING", TaskState::kRunning},
                            Word{"RESIZING", TaskState::kRunning},
                            Word{"SIGNALING", TaskState::kRunning},
                            Word{"STAGE_OUT", TaskState::kRunning},
                            Word{"STOPPED", TaskState::kRunning},
                            Word{"SUSPENDED", TaskState::kRunning},
                            Word{"COMPLETED", TaskState::kDone},
                            Word{"FAILED", TaskState::kFailed},
                            Word{"LAUNCH_FAILED", TaskState::kFailed},
                            Word{"RECONFIG_FAIL", TaskState::kFailed},
                            Word{"TIMEOUT", TaskState::kTimeLimit},
                            Word{"DEADLINE", TaskState::kTimeLimit},
                            Word{"OUT_OF_MEMORY", TaskState::kOutOfMemory},
                            Word{"CANCELLED", TaskState::kCancelled},
                            Word{"NODE_FAIL", TaskState::kLost},
                            Word{"BOOT_FAIL", TaskState::kLost},
                            Word{"PREEMPTED", TaskState::kLost},
                            Word{"REVOKED", TaskState::kLost}};

}  // namespace

std::optional<std::int64_t> walltime_seconds(const std::string& text) {
  const auto dash = text.find('-');
  const auto days = dash == std::string::npos ? std::optional(std::vector<std::int64_t>{0})
                                              : numbers_in(text.substr(0, dash), '-');
  const auto parts = numbers_in(dash == std::string::npos ? text : text.substr(dash + 1), ':');
  if (text.empty() || !days || days->size() != 1 || !parts || parts->size() > 3) return {};
  const auto& at = *parts;
  const auto part = [&](std::size_t i) { return i < at.size() ? at[i] : 0; };
  if (dash != std::string::npos || at.size() == 3)
    return days->front() * kSecondsADay + part(0) * kSecondsAnHour + part(1) * kSecondsAMinute +
           part(2);
  return part(0) * kSecondsAMinute + part(1);
}

void check_options(const SlurmOptions& options) {
  if (!options.time.empty() && !walltime_seconds(options.time))
    throw ConfigError(fmt::format(
        "--time {}: expected minutes, minutes:seconds, hours:minutes:seconds, days-hours, "
        "days-hours:minutes or days-hours:minutes:seconds, as sbatch takes them",
        printable(options.time)));
  for (const auto& [option, text] : {std::pair("--partition", &options.partition),
                                     {"--account", &options.account},
                                     {"--gres", &options.gres},
                                     {"--gpus-per-node", &options.gpus_per_node},
                                     {"--qos", &options.qos},
                                     {"--constraint", &options.constraint},
                                     {"--mem", &options.memory}})
    check_text(option, *text);
  if (options.prefix.find('\n') != std::string::npos)
    throw ConfigError("--prefix holds a line break");
}

std::string script_text(const SlurmOptions& options, const ScriptPlace& place) {
  check_text("the folder of the run", place.queue);
  if (place.queue.find('%') != std::string::npos)
    throw ConfigError(fmt::format("the folder of the run holds a %, which Slurm replaces: {}",
                                  printable(place.queue)));
  std::string text = "#!/bin/bash\n";
  const auto say = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) text += fmt::format("#SBATCH --{}=\"{}\"\n", option, value);
  };
  say("job-name", "peakbench");
  say("array", fmt::format("0-{}{}", place.tasks - 1,
                           options.at_once > 0 ? fmt::format("%{}", options.at_once) : ""));
  say("ntasks", "1");
  say("cpus-per-task", std::to_string(options.cpus_per_task));
  say("partition", options.partition);
  say("account", options.account);
  say("time", options.time);
  say("gres", options.gres);
  say("gpus-per-node", options.gpus_per_node);
  say("qos", options.qos);
  say("constraint", options.constraint);
  say("mem", options.memory);
  say("output", place.logs + "/%a.txt");
  text += "#SBATCH --open-mode=append\n#SBATCH --requeue\n";
  if (has_warning(options)) say("signal", fmt::format("B:USR2@{}", kWarning_s));
  // One process a case: this one. Cases of several ranks would begin here with srun, a process a
  // rank, and what torchrun sets (RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT).
  text += fmt::format("exec {}{} work {} --task \"$SLURM_ARRAY_TASK_ID\" --jobs {}\n",
                      options.prefix.empty() ? "" : options.prefix + " ", quoted(place.program),
                      quoted(place.queue), options.cpus_per_task);
  return text;
}

std::vector<std::size_t> tasks_of_id(const std::string& id) {
  const auto line = id.find('_');
  if (line == std::string::npos) return {};
  auto list = id.substr(line + 1);
  if (list.starts_with('[') && list.ends_with(']')) list = list.substr(1, list.size() - 2);
  list = list.substr(0, list.find('%'));
  std::vector<std::size_t> tasks;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto colon = part.find(':');
    const auto step = colon == std::string::npos ? std::optional(std::vector<std::int64_t>{1})
                                                 : numbers_in(part.substr(colon + 1), ':');
    const auto range = numbers_in(part.substr(0, colon), '-');
    if (!step || step->front() < 1 || !range || range->size() > 2) return {};
    for (auto task = range->front(); task <= range->back(); task += step->front())
      tasks.push_back(static_cast<std::size_t>(task));
  }
  return tasks;
}

TaskState state_from(const std::string& word) {
  const auto first = word.substr(0, word.find_first_of(" +"));
  const auto* const found =
      std::ranges::find_if(kWords, [&](const Word& one) { return one.word == first; });
  return found == kWords.end() ? TaskState::kRunning : found->state;
}

bool never_begins(const std::string& reason) {
  static constexpr std::array kReasons{"AccountNotAllowed", "BadConstraints", "InvalidAccount",
                                       "InvalidQOS", "QOSNotAllowed", "PartitionTimeLimit",
                                       "PartitionNodeLimit",
                                       // 22.05 says it in words
                                       "can't use this partition", "can not use this partition"};
  return std::ranges::any_of(
      kReasons, [&](const char* one) { return reason.find(one) != std::string::npos; });
}

std::map<std::size_t, TaskSeen> states_from(const std::string& lines) {
  std::map<std::size_t, TaskSeen> states;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    const auto first = line.find('|');
    if (first == std::string::npos) continue;
    const auto second = std::min(line.find('|', first + 1), line.size());
    const auto word = trimmed(line.substr(first + 1, second - first - 1));
    const auto where = second < line.size() ? printable(trimmed(line.substr(second + 1))) : "";
    const auto state = state_from(word);
    const bool never = state == TaskState::kWaiting && never_begins(where);
    for (const auto task : tasks_of_id(trimmed(line.substr(0, first))))
      states[task] = {never ? TaskState::kNever : state, printable(word), where};
  }
  return states;
}

std::string job_from(const std::string& out) {
  std::istringstream lines(out);
  std::string job;
  for (std::string line; std::getline(lines, line);) {
    const auto number = trimmed(line.substr(0, line.find(';')));
    if (!number.empty() && number.find_first_not_of("0123456789") == std::string::npos)
      job = number;
  }
  return job;
}

bool Slurm::is_here() { return process::find_program("sbatch").has_value(); }

Slurm::Slurm() {
  if (!is_here())
    throw ConfigError(
        "--executor slurm: there is no sbatch on PATH. Run this where jobs are submitted (a login "
        "node), or leave --executor out to run here.");
}

std::string Slurm::submit(const std::string& script_path) {
  const auto said = asked({"sbatch", "--parsable", script_path});
  if (!said.ok())
    throw ConfigError(fmt::format("sbatch refused the job: {}. The script is {}.",
                                  words_of(said, "sbatch"), script_path));
  const auto job = job_from(said.out);
  if (job.empty())
    throw ConfigError(fmt::format("sbatch printed no job number, but: {}", printable(said.out)));
  return job;
}

std::optional<std::string> Slurm::job_of(const std::string& script_path) {
  const auto said =
      asked({"squeue", "--noheader", "--me", "--states=pending,running", "--format=%F|%o"});
  if (!said.ok()) return std::nullopt;
  std::istringstream lines(said.out);
  for (std::string line; std::getline(lines, line);) {
    const auto bar = line.find('|');
    if (bar != std::string::npos && trimmed(line.substr(bar + 1)) == script_path)
      return trimmed(line.substr(0, bar));
  }
  return "";
}

std::optional<std::map<std::size_t, TaskSeen>> Slurm::states(const std::string& job,
                                                             std::size_t tasks) {
  const auto said = asked(
      {"squeue", "--noheader", "--array", "--states=all", "--jobs=" + job, "--format=%i|%T|%R"});
  const bool forgotten = said.err.find("Invalid job id") != std::string::npos;
  if (!said.ok() && !forgotten) return std::nullopt;
  auto states = states_from(said.out);
  if (states.size() < tasks) add_from_accounting(job, states);
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
  if (said.ok()) states.merge(states_from(said.out));
}

std::string Slurm::cancel(const std::string& job) {
  const auto said = asked({"scancel", job});
  return said.ok() ? "" : words_of(said, "scancel");
}

}  // namespace peakbench::executor
