#include "executor/attempt_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "result/case.h"

namespace peakbench::executor {
namespace {

constexpr const char* kTimeLimitWords = "the job's time limit";

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

std::string short_time_text(const plan::Plan& plan, const launch::CaseStates& states,
                            const launch::Cases& order, const SlurmOptions& options) {
  const auto stopped = [&](std::size_t index) {
    const auto& one = states.results[index];
    return one && one->status == result::Status::kTimeout &&
           one->reason.find(kTimeLimitWords) != std::string::npos;
  };
  if (order.empty() || !std::ranges::all_of(order, [&](std::size_t index) {
        return plan.cases[index].decided || stopped(index);
      }))
    return "";
  return fmt::format("no case ended within {}{}: give --time more", kTimeLimitWords,
                     time_option(options));
}

std::string time_option(const SlurmOptions& options) {
  return options.time.empty() ? "" : fmt::format(" (--time {})", options.time);
}

}  // namespace peakbench::executor
