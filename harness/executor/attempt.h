// How one attempt at a task went, by all that is known of it, and what follows for its cases. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "executor/outcomes.h"
#include "executor/scheduler.h"

namespace peakbench::executor {

inline constexpr int kMostAttempts = 3;  // at a case whose tasks end without a word

enum class Stage {
  kNever,   // the job waits for what does not come
  kAtWork,  // or waits
  kSilent,  // ended, but its last files may still come
  kEnded,
};

// `stopped`: the task itself says that a signal ended it. `settled`: it has been silent for as long
// as files may stay unseen.
Stage stage_of(TaskState state, bool stopped, bool settled);

// A case of the task without a row.
struct CaseLeft {
  std::size_t index = 0;  // in the plan
  int failures = 0;       // attempts before this one that ended without a word
  // Workers that had ended before it began, of a case that was being measured at the end.
  std::optional<std::size_t> begun_after;
};

struct Attempt {
  TaskState state = TaskState::kFailed;  // the scheduler's
  bool stopped = false;                  // see stage_of()
  bool heard = false;                    // some task has written into the run's folder
  std::vector<CaseLeft> left;
};

enum class AttemptEnd {
  kMeasured,   // nothing is left
  kCancelled,  // by somebody: what is left stays pending
  kLost,       // no fault of anybody's: what is left is submitted again
  kOutOfTime,
  kOutOfMemory,
  kFailed,
  kUnheard,  // and so would every other task
};

// A case that is over without having been measured.
struct CaseOver {
  std::size_t index = 0;
  EndedBy by = EndedBy::kFailures;
  bool after_attempts = false;  // kMostAttempts of them, none of which told the case to blame

  bool operator==(const CaseOver&) const = default;
};

struct Conclusion {
  AttemptEnd end = AttemptEnd::kMeasured;
  std::vector<CaseOver> over;
  std::vector<std::size_t> failed;  // with one failure more; those that are over are not among them
};

// The case that had the task from its beginning is to blame for the end of its time, and those at
// work for that of its memory. Others had no chance.
Conclusion conclude(const Attempt& attempt);

}  // namespace peakbench::executor
