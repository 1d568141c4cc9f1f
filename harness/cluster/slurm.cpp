#include "cluster/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <sstream>
#include <utility>

#include "base/errors.h"
#include "base/numbers.h"
#include "base/printable.h"
#include "cluster/submission.h"
#include "host/command.h"
#include "launch/interrupt.h"

namespace peakbench::cluster {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Of decimal numbers without leading zeros, however long.
bool is_less(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

struct TaskRange {
  std::int64_t first = 0, last = 0, step = 1;
};

// "7", "0-2" or "1-9:4".
std::optional<TaskRange> range_from(const std::string& part) {
  const auto colon = part.find(':');
  const auto step = colon == std::string::npos ? std::optional(std::vector<std::int64_t>{1})
                                               : numbers_in(part.substr(colon + 1), ':');
  const auto ends = numbers_in(part.substr(0, colon), '-');
  if (!step || step->front() < 1 || !ends || ends->size() > 2) return std::nullopt;
  return TaskRange{ends->front(), ends->back(), step->front()};
}

// The job's number of 12_3 and of 12.
std::string job_of_id(const std::string& id) { return id.substr(0, id.find('_')); }

struct Row {
  std::string id, word, rest;
};

// Nullopt: a line of something else.
std::optional<Row> row_from(const std::string& line) {
  const auto first = line.find('|');
  if (first == std::string::npos) return std::nullopt;
  const auto second = std::min(line.find('|', first + 1), line.size());
  return Row{trimmed(line.substr(0, first)), trimmed(line.substr(first + 1, second - first - 1)),
             second < line.size() ? trimmed(line.substr(second + 1)) : ""};
}

// The state that a long word of squeue's or sacct's means: "CANCELLED by 1000"; CF, CG and such are
// never asked for. RUNNING and what belongs to it (COMPLETING, STAGE_OUT, SUSPENDED) is kRunning,
// and so is a word that is not known: nothing is concluded from it.
TaskState state_from(const std::string& word) {
  const auto is = [first = word.substr(0, word.find_first_of(" +"))](const auto&... words) {
    return ((first == words) || ...);
  };
  if (is("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD",
         "SPECIAL_EXIT"))
    return TaskState::kWaiting;
  if (is("COMPLETED")) return TaskState::kDone;
  if (is("FAILED", "LAUNCH_FAILED", "RECONFIG_FAIL")) return TaskState::kFailed;
  if (is("TIMEOUT", "DEADLINE")) return TaskState::kTimeLimit;
  if (is("OUT_OF_MEMORY")) return TaskState::kOutOfMemory;
  if (is("CANCELLED")) return TaskState::kCancelled;
  if (is("NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED")) return TaskState::kLost;
  return TaskState::kRunning;
}

// A reason to wait, as squeue gives it, that no waiting ends: a partition, an account or a limit
// that refuses the job.
bool never_begins(const std::string& reason) {
  static constexpr std::array kReasons{"AccountNotAllowed", "BadConstraints", "InvalidAccount",
                                       "InvalidQOS", "QOSNotAllowed", "PartitionTimeLimit",
                                       "PartitionNodeLimit",
                                       // 22.05 says it in words
                                       "can't use this partition", "can not use this partition"};
  return std::ranges::any_of(
      kReasons, [&](const char* one) { return reason.find(one) != std::string::npos; });
}

TaskSeen seen_from(const Row& row) {
  const auto where = printable(row.rest);
  const auto state = state_from(row.word);
  const bool never = state == TaskState::kWaiting && never_begins(where);
  return {never ? TaskState::kNever : state, printable(row.word), where};
}

}  // namespace

std::optional<std::vector<std::int64_t>> numbers_in(std::string_view text, char separator) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(separator, at), text.size());
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // as Slurm's own
    const auto number = integer_from_text(text.substr(at, end - at), {0, kMost});
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    at = end + 1;
  }
  return numbers;
}

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(" \t\r\n");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

std::vector<std::size_t> tasks_of_id(const std::string& id, const std::string& job,
                                     std::size_t tasks) {
  const auto line = id.find('_');
  if (line == std::string::npos || job_of_id(id) != job) return {};
  auto list = id.substr(line + 1);
  if (list.starts_with('[') && list.ends_with(']')) list = list.substr(1, list.size() - 2);
  list = list.substr(0, list.find('%'));
  std::vector<std::size_t> found;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto range = range_from(part);
    if (!range) return {};
    const auto last = std::min(range->last, static_cast<std::int64_t>(tasks) - 1);
    for (auto task = range->first; task <= last; task += range->step)
      found.push_back(static_cast<std::size_t>(task));
    if (found.size() > tasks) return {};  // no id names a task twice
  }
  return found;
}

std::optional<std::map<std::size_t, TaskSeen>> states_from(const std::string& lines,
                                                           const std::string& job,
                                                           std::size_t tasks) {
  constexpr std::size_t kMostRowsATask = 100;
  std::map<std::size_t, TaskSeen> states;
  bool others = false;
  std::size_t left = kMostRowsATask * tasks;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    const auto row = row_from(line);
    if (!row) continue;
    const auto found = tasks_of_id(row->id, job, tasks);
    others = others || job_of_id(row->id) != job;
    if (found.size() > left) return std::nullopt;
    left -= found.size();
    if (found.empty()) continue;
    const auto seen = seen_from(*row);
    for (const auto task : found) states[task] = seen;
  }
  if (states.empty() && others) return std::nullopt;
  return states;
}

std::string live_job_from(const std::string& lines, const std::string& script_path) {
  std::string newest;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    const auto row = row_from(line);
    if (!row || row->rest != script_path || !is_number(row->id)) continue;
    const auto state = state_from(row->word);
    const bool live = state == TaskState::kWaiting || state == TaskState::kRunning;
    if (live && is_less(newest, row->id)) newest = row->id;
  }
  return newest;
}

std::optional<int> restarts_from(const std::string& out) {
  constexpr std::string_view kField = " Restarts=";
  const auto at = out.find(kField);
  if (at == std::string::npos) return std::nullopt;
  const auto from = at + kField.size();
  const auto numbers = numbers_in(out.substr(from, out.find_first_of(" \n", from) - from), ' ');
  if (!numbers) return std::nullopt;
  return static_cast<int>(numbers->front());
}

std::string job_from(const std::string& out) {
  std::istringstream lines(out);
  std::string job;
  for (std::string line; std::getline(lines, line);) {
    const auto number = trimmed(line.substr(0, line.find(';')));
    if (is_number(number)) job = number;
  }
  return job;
}

namespace {

using process::CommandSaid;

// An order of the user's to every job of theirs (SBATCH_PARTITION) or to every look at them
// (SQUEUE_STATES) is none to this one: what is asked for stands in the script.
const std::vector<std::string> kOthersOrders{"SBATCH_", "SQUEUE_", "SACCT_", "SLURM_TIME_FORMAT",
                                             "SCANCEL_"};

// The controller of a large machine takes its time.
constexpr auto kPatience = std::chrono::seconds(60);

// `cancelled`: of a question. An order that was given is waited for.
CommandSaid asked(std::vector<std::string> arguments,
                  const std::function<bool()>& cancelled = launch::interrupted) {
  return process::ask_command({.arguments = std::move(arguments),
                               .patience = kPatience,
                               .without = kOthersOrders,
                               .cancelled = cancelled});
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
  const auto said = asked({"sbatch", "--parsable", script_path}, {});
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
  const auto said = asked({"scancel", job}, {});
  return said.ok() ? "" : words_of(said, "scancel");
}

}  // namespace peakbench::cluster
