#include "executor/slurm_words.h"

#include <algorithm>
#include <array>
#include <charconv>
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

}  // namespace

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

}  // namespace peakbench::executor
