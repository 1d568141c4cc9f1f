#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cluster/scheduler.h"
#include "cluster/submission.h"
#include "launch/case_states.h"
#include "planning/plan.h"
#include "records/case.h"

namespace peakbench::cluster {

// What became of a case whose task the scheduler ended. Pure.

enum class EndedBy { kTimeLimit, kMemory, kFailures };

// The case's row; `known`: what was measured of it before. On the CPU, memory of the machine is the
// device's; elsewhere its lack says nothing of the case.
records::CaseResult ended_by(EndedBy by, const std::string& words, records::CaseResult known);

// How one attempt at a task went, by all that is known of it, and what follows for its cases. Pure.

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
  kCancelled,  // by a user: unfinished cases stay pending
  kLost,       // no case is to blame: unfinished ones are resubmitted
  kOutOfTime,
  kOutOfMemory,
  kFailed,
  kUnheard,  // and so would every other task
};

// A case that is over without having been measured.
struct CaseOver {
  std::size_t index = 0;
  EndedBy by = EndedBy::kFailures;
  bool after_attempts = false;  // after kMostAttempts without a case to blame

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

// How a task's attempt ended, in a sentence.

// The reason of a case that is over with its task.
std::string reason_of(EndedBy by, const Submission& submission, const Task& task,
                      const SlurmOptions& options);

// "task 3 of job 17 ended FAILED on n1: WHAT".
std::string warning_of(const Submission& submission, const Task& task, const std::string& what);

// Of a task that left nothing in the run's folder, as the others then will not: why the run is
// given up.
std::string unheard_text(const Submission& submission, const Task& task,
                         const std::string& program);

// The message that no case of the run ended within the job's time, in addition to the rows; else
// empty.
std::string short_time_text(const planning::Plan& plan, const launch::CaseStates& states,
                            const launch::Cases& order, const SlurmOptions& options);

}  // namespace peakbench::cluster
