#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cluster/scheduler.h"
#include "cluster/submission.h"
#include "launch/case_states.h"
#include "launch/run_book.h"
#include "launch/session.h"
#include "planning/plan.h"
#include "records/run.h"

namespace peakbench::cluster {

// What tasks have measured, taken into the book of the run that submitted them.

// The run that a task's results belong to.
enum class From {
  kThisCall,
  kEarlierCall,  // what the machine failed then is measured again
};

class Intake {
 public:
  // The references must outlive it.
  Intake(const planning::Plan& plan, launch::RunBook& book);

  const std::map<std::string, std::size_t>& index_of() const { return index_of_; }
  bool is_pending(std::size_t index) const { return book_.states().pending.contains(index); }
  launch::Cases pending_of(const launch::Cases& cases) const;

  // Takes results from the run of a task of these cases. `last`: also incomplete ones, as this
  // attempt makes no more.
  void take(const launch::Cases& cases, const records::Run& run, From from, bool last);
  void end(std::size_t index, records::CaseResult found);
  // As far as it is measured: for the row of a case that ends without its task's word.
  records::CaseResult known(std::size_t index) const;

 private:
  void take_unfinished(std::size_t index, const records::Run& run, const records::CaseResult& one);
  records::CaseResult as_measured_on(const records::Run& run, records::CaseResult one,
                                     std::size_t index) const;
  std::string reference_of(std::size_t index) const;

  const planning::Plan& plan_;
  launch::RunBook& book_;
  const nlohmann::json host_;
  std::map<std::string, std::size_t> index_of_;
};

// Watching the tasks of a submission: what they write into its folder, and what the scheduler says
// of them. What follows from it is decided elsewhere (attempt.h).

// Grows while nothing happens.
class Interval {
 public:
  using Clock = std::chrono::steady_clock;

  Interval(std::chrono::milliseconds least, std::chrono::milliseconds most)
      : least_(least), most_(most), now_(least) {}
  bool due(Clock::time_point now) const { return now >= next_; }
  void done(Clock::time_point began, bool something);

 private:
  std::chrono::milliseconds least_, most_, now_;
  Clock::time_point next_;
};

// Who hears what tasks have measured, and that one could not begin.
struct TaskNews {
  // `last`: this attempt makes no more results.
  std::function<void(const Task&, const records::Run&, bool last)> measured;
  std::function<void(const Task&, const std::string& why)> refused;
};

// Each true where something was new.

// Ends of attempts that are not read yet. What an attempt before the last one says of how it ended
// is no end of the task.
bool read_ends(Submission& submission, const TaskNews& news);
// The run.json of a task at work: of its last attempt that has one. `last`: of every attempt, the
// last one first, even if they were read.
bool read_progress(const Submission& submission, Task& task, bool last, const TaskNews& news);

// The states of tasks from a scheduler. If it does not reply, that is reported once until it does.
class StateWatch {
 public:
  StateWatch(Scheduler& scheduler, launch::RunListener& listener)
      : scheduler_(scheduler), listener_(listener) {}

  // Updates each task that is not over, and reports a summary. Calls `see` for each task, changed
  // or not.
  bool look(Submission& submission, const std::function<void(Task&)>& see);
  // For a task that reports that it was stopped. The scheduler may have seen another attempt end:
  // files of a later attempt may still arrive, or may not exist.
  void ask_for_restarts(const Submission& submission, Task& task);

 private:
  Scheduler& scheduler_;
  launch::RunListener& listener_;
  bool answered_ = true;
};

}  // namespace peakbench::cluster
