#include "executor/attempt.h"

#include <algorithm>

namespace peakbench::executor {
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

}  // namespace peakbench::executor
