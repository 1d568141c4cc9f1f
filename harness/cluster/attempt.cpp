#include "cluster/attempt.h"

#include <fmt/format.h>

#include <algorithm>

#include "records/device.h"

namespace peakbench::cluster {
namespace {

using records::Status;

Status status_of(EndedBy by, const records::CaseSpec& spec) {
  switch (by) {
    case EndedBy::kTimeLimit:
      return Status::kTimeout;
    case EndedBy::kMemory:
      return records::recorded_device(spec.device).is_host_memory ? Status::kOutOfMemory
                                                                  : Status::kHostFailure;
    case EndedBy::kFailures:
      break;
  }
  return Status::kHostFailure;
}

}  // namespace

records::CaseResult ended_by(EndedBy by, const std::string& words, records::CaseResult known) {
  known.status = status_of(by, known.spec);
  known.reason = known.memory ? words + " (memory was measured)" : words;
  if (!known.throughput || known.status != Status::kOk) known.throughput_reason = words;
  if (!known.memory && known.equivalence) {
    known.equivalence->verdict = "not_checked";
    known.equivalence->reason = "the case ended " + to_string(known.status);
  }
  return known;
}

namespace {

AttemptEnd end_of(const Attempt& attempt) {
  if (attempt.left.empty()) return AttemptEnd::kMeasured;
  if (attempt.state == TaskState::kCancelled) return AttemptEnd::kCancelled;
  if (attempt.state == TaskState::kLost) return AttemptEnd::kLost;
  // A scheduler says that a program which ends itself in time has failed.
  if (attempt.state == TaskState::kTimeLimit || attempt.stopped) return AttemptEnd::kOutOfTime;
  if (attempt.state == TaskState::kOutOfMemory) return AttemptEnd::kOutOfMemory;
  return attempt.heard ? AttemptEnd::kFailed : AttemptEnd::kUnheard;
}

void count_failure(const std::vector<CaseLeft>& left, EndedBy by, Conclusion& conclusion) {
  for (const auto& one : left)
    if (one.failures + 1 >= kMostAttempts)
      conclusion.over.push_back({one.index, by, true});
    else
      conclusion.failed.push_back(one.index);
}

void blame(const std::vector<CaseLeft>& left, EndedBy by, Conclusion& conclusion) {
  const auto was_at_work = [](const CaseLeft& one) { return one.begun_after.has_value(); };
  if (std::ranges::none_of(left, was_at_work)) {
    count_failure(left, by, conclusion);
    return;
  }
  // One that began late gets a task's whole time.
  for (const auto& one : left)
    if (was_at_work(one) && (by != EndedBy::kTimeLimit || one.begun_after == 0U))
      conclusion.over.push_back({one.index, by, false});
}

}  // namespace

Stage stage_of(TaskState state, bool stopped, bool settled) {
  switch (state) {
    case TaskState::kNever:
      return Stage::kNever;
    case TaskState::kWaiting:
    case TaskState::kRunning:
      return Stage::kAtWork;
    default:
      return settled || stopped ? Stage::kEnded : Stage::kSilent;
  }
}

Conclusion conclude(const Attempt& attempt) {
  Conclusion conclusion{end_of(attempt), {}, {}};
  switch (conclusion.end) {
    case AttemptEnd::kOutOfTime:
      blame(attempt.left, EndedBy::kTimeLimit, conclusion);
      break;
    case AttemptEnd::kOutOfMemory:
      blame(attempt.left, EndedBy::kMemory, conclusion);
      break;
    case AttemptEnd::kFailed:
      count_failure(attempt.left, EndedBy::kFailures, conclusion);
      break;
    default:
      break;
  }
  return conclusion;
}

namespace {

constexpr const char* kTimeLimitWords = "the job's time limit";

// " (--time 4:00)"; empty where none was given.
std::string time_option(const SlurmOptions& options) {
  return options.time.empty() ? "" : fmt::format(" (--time {})", options.time);
}

}  // namespace

std::string reason_of(EndedBy by, const Submission& submission, const Task& task,
                      const SlurmOptions& options) {
  const auto which = name_of(submission, task);
  switch (by) {
    case EndedBy::kTimeLimit:
      return fmt::format("{} was stopped at {}{}", which, kTimeLimitWords, time_option(options));
    case EndedBy::kMemory:
      return fmt::format("{} ran out of the memory that the job has on {}{}", which,
                         task.seen.where,
                         options.memory.empty() ? "; ask for more with --mem"
                                                : fmt::format(" (--mem {})", options.memory));
    case EndedBy::kFailures:
      break;
  }
  return fmt::format("{} ended {} without a result; its log is {}", which, end_text(task),
                     submission.files.log(task.number));
}

std::string warning_of(const Submission& submission, const Task& task, const std::string& what) {
  return fmt::format("{} ended {}: {}", name_of(submission, task), end_text(task), what);
}

std::string unheard_text(const Submission& submission, const Task& task,
                         const std::string& program) {
  return fmt::format(
      "{} ended {} and left nothing in {}. Can the machines of the partition write there, and run "
      "{}? Its log, should it have one, is {}.",
      name_of(submission, task), end_text(task), submission.files.folder(), program,
      submission.files.log(task.number));
}

std::string short_time_text(const planning::Plan& plan, const launch::CaseStates& states,
                            const launch::Cases& order, const SlurmOptions& options) {
  const auto stopped = [&](std::size_t index) {
    const auto& one = states.results[index];
    return one && one->status == records::Status::kTimeout &&
           one->reason.find(kTimeLimitWords) != std::string::npos;
  };
  if (order.empty() || !std::ranges::all_of(order, [&](std::size_t index) {
        return plan.cases[index].decided || stopped(index);
      }))
    return "";
  return fmt::format("no case ended within {}{}: give --time more", kTimeLimitWords,
                     time_option(options));
}

}  // namespace peakbench::cluster
