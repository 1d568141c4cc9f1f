#include "executor/slurm_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <sstream>

#include "text/printable.h"

namespace peakbench::executor {
namespace {

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
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data() + at, text.data() + end, number);
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // as Slurm's own
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

}  // namespace peakbench::executor
