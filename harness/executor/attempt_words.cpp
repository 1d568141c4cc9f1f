#include "executor/attempt_words.h"

#include <fmt/format.h>

namespace peakbench::executor {

std::string reason_of(EndedBy by, const Submission& submission, const Task& task,
                      const SlurmOptions& options) {
  const auto which = name_of(submission, task);
  switch (by) {
    case EndedBy::kTimeLimit:
      return fmt::format("{} was stopped at the job's time limit{}", which, time_option(options));
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

std::string time_option(const SlurmOptions& options) {
  return options.time.empty() ? "" : fmt::format(" (--time {})", options.time);
}

}  // namespace peakbench::executor
