// Watching the tasks of a submission: what they write into its folder, and what the scheduler says
// of them. What follows from it is decided elsewhere (attempt.h).
#pragma once

#include <chrono>
#include <functional>

#include "executor/scheduler.h"
#include "executor/submission.h"
#include "launch/run_listener.h"
#include "result/run.h"

namespace peakbench::executor {

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
  // `last`: nothing more comes of this attempt.
  std::function<void(const Task&, const result::Run&, bool last)> measured;
  std::function<void(const Task&, const std::string& why)> refused;
};

// Each true where something was new.

// Ends of attempts that are not read yet. What an attempt before the last one says of how it ended
// is no end of the task.
bool read_ends(Submission& submission, const TaskNews& news);
// The run.json of a task at work: of its last attempt that has one. `last`: of every attempt, the
// last one first, even if they were read.
bool read_progress(const Submission& submission, Task& task, bool last, const TaskNews& news);

// What a scheduler says. It need not answer: that is told once, until it does.
class StateWatch {
 public:
  StateWatch(Scheduler& scheduler, launch::RunListener& listener)
      : scheduler_(scheduler), listener_(listener) {}

  // Of each task that is not over; tells how all stand. `see` is told of a task, whether its state
  // has changed or not.
  bool look(Submission& submission, const std::function<void(Task&)>& see);
  // Of a task that says that it was stopped: the attempt that says so need not be the one that the
  // scheduler saw end. Files of a later one may still come, or there are none.
  void ask_for_restarts(const Submission& submission, Task& task);

 private:
  Scheduler& scheduler_;
  launch::RunListener& listener_;
  bool answered_ = true;
};

// "1 task", "2 tasks".
std::string count_text(std::size_t count, const std::string& what);

}  // namespace peakbench::executor
