#include "executor/watch.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "errors/errors.h"
#include "launch/interrupt.h"

namespace peakbench::executor {
namespace {

// Changes with every writing, which makes the file anew; empty: there is none.
std::string stamp_of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return "";
  return fmt::format("{} {} {}.{}", found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

std::string states_text(const Submission& submission) {
  const auto count = [&](TaskState state) {
    return static_cast<std::size_t>(std::ranges::count_if(submission.tasks, [&](const Task& task) {
      return !task.over && task.seen.state == state;
    }));
  };
  return fmt::format("job {}: {} running, {} waiting", submission.job,
                     count_text(count(TaskState::kRunning), "task"), count(TaskState::kWaiting));
}

void note_begun(const Submission& submission, Task& task) {
  if (const auto attempts = attempts_in(submission.files, task.number); !attempts.empty())
    task.begun = std::max(task.begun, attempts.back());
}

void take(Task& task, const TaskEnd& end, const TaskNews& news) {
  task.attempt = end.attempt;
  if (end.how == TaskEnd::How::kRefused) {
    if (end.attempt >= task.begun) news.refused(task, end.why);
    return;
  }
  task.stopped_by = end.how == TaskEnd::How::kStopped ? end.why : "";
  if (end.run) news.measured(task, *end.run, true);
  task.over = end.how == TaskEnd::How::kDone;
}

}  // namespace

void Interval::done(Clock::time_point began, bool something) {
  const auto end = Clock::now();
  now_ = something ? least_ : std::min(most_, now_ * 3 / 2);
  constexpr int kPausePerLook = 4;  // looking takes a fifth of the time at most
  next_ = end + std::max<Clock::duration>(now_, (end - began) * kPausePerLook);
}

bool read_ends(Submission& submission, const TaskNews& news) {
  bool something = false;
  for (const auto& name : ends_in(submission.files)) {
    const auto task = std::ranges::find(submission.tasks, name.task, &Task::number);
    if (task == submission.tasks.end() || task->over || name.attempt <= task->attempt) continue;
    const auto end = read_task_end(name.path);
    if (!end) continue;
    something = true;
    note_begun(submission, *task);
    take(*task, *end, news);
  }
  return something;
}

bool read_progress(const Submission& submission, Task& task, bool last, const TaskNews& news) {
  note_begun(submission, task);
  bool something = false;
  auto attempts = attempts_in(submission.files, task.number);
  for (; !attempts.empty(); attempts.pop_back()) {
    const auto path = submission.files.attempt_folder(task.number, attempts.back()) + "/run.json";
    const auto stamp = stamp_of(path);
    if (stamp.empty()) continue;
    if (!last && stamp == task.stamp) return false;
    try {
      news.measured(task, result::read_run(path), last);
      something = true;
      task.stamp = stamp;
    } catch (const RunFileError&) {
      // On a file system over a network: just being replaced.
    }
    if (!last) break;
  }
  return something;
}

bool StateWatch::look(Submission& submission, const std::function<void(Task&)>& see) {
  const auto states = scheduler_.states(submission.job, submission.tasks.back().number + 1);
  if (!states) {
    if (!launch::interrupted() && std::exchange(answered_, false))
      listener_.warning("the scheduler does not answer; results are taken as they come");
    return false;
  }
  answered_ = true;
  bool something = false;
  for (auto& task : submission.tasks) {
    if (task.over) continue;
    const auto found = states->find(task.number);
    auto seen = found == states->end()
                    ? TaskSeen{TaskState::kFailed, "unknown to the scheduler", ""}
                    : found->second;
    something = something || seen.word != task.seen.word;
    task.seen = std::move(seen);
    see(task);
  }
  listener_.tasks_state(states_text(submission));
  return something;
}

void StateWatch::ask_for_restarts(const Submission& submission, Task& task) {
  if (const auto restarts = scheduler_.restarts(submission.job, task.number))
    task.begun = std::max(task.begun, *restarts);
}

std::string count_text(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace peakbench::executor
