#include "cluster/watch.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/errors.h"
#include "cluster/merge.h"
#include "launch/interrupt.h"
#include "launch/plugin_builds.h"
#include "launch/run_folder.h"

namespace peakbench::cluster {
namespace {

std::size_t rounds_of(const records::CaseResult& one) {
  return one.throughput ? one.throughput->rounds.size() : 0;
}

// What an earlier call's task measured may be of plugins that were built anew since.
bool is_of_today(const records::CaseResult& one, const planning::PlannedCase& planned) {
  return one.status != records::Status::kHostFailure &&
         launch::other_builds(one.plugins, launch::plugin_builds(planned)).empty();
}

}  // namespace

Intake::Intake(const planning::Plan& plan, launch::RunBook& book)
    : plan_(plan), book_(book), host_(launch::host_environment(plan)) {
  for (std::size_t i = 0; i < plan.cases.size(); ++i) index_of_[plan.cases[i].spec.id] = i;
}

launch::Cases Intake::pending_of(const launch::Cases& cases) const {
  launch::Cases left;
  std::ranges::copy_if(cases, std::back_inserter(left),
                       [&](std::size_t index) { return is_pending(index); });
  return left;
}

void Intake::take(const launch::Cases& cases, const records::Run& run, From from, bool last) {
  const std::set<std::string> unfinished(run.pending.begin(), run.pending.end());
  for (const auto& one : run.cases) {
    const auto found = index_of_.find(one.spec.id);
    if (found == index_of_.end() || std::ranges::find(cases, found->second) == cases.end())
      continue;
    const auto index = found->second;
    if (!is_pending(index)) continue;
    if (from == From::kEarlierCall && !is_of_today(one, plan_.cases[index])) continue;
    if (!unfinished.contains(one.spec.id))
      end(index, as_measured_on(run, one, index));
    else if (last)
      take_unfinished(index, run, one);
  }
}

void Intake::take_unfinished(std::size_t index, const records::Run& run,
                             const records::CaseResult& one) {
  const auto& known = book_.states().results[index];
  if (!known || rounds_of(one) > rounds_of(*known))
    book_.take_over(index, as_measured_on(run, one, index));
}

void Intake::end(std::size_t index, records::CaseResult found) {
  book_.take_over(index, std::move(found));
  book_.is_over(index);
}

records::CaseResult Intake::known(std::size_t index) const {
  if (const auto& known = book_.states().results[index]) return *known;
  const auto& planned = plan_.cases[index];
  records::CaseResult fresh;
  fresh.spec = planned.spec;
  fresh.added_for = planned.added_for;
  if (!facts_of(planned.spec.kind).has_promise) return fresh;
  fresh.equivalence = planned.promise;
  fresh.equivalence->reference_case = reference_of(index);
  return fresh;
}

records::CaseResult Intake::as_measured_on(const records::Run& run, records::CaseResult one,
                                           std::size_t index) const {
  note_machine(one, run.environment, host_);
  // The task's plan may lack the case that it is held against.
  if (one.equivalence && one.equivalence->reference_case.empty())
    one.equivalence->reference_case = reference_of(index);
  return one;
}

std::string Intake::reference_of(std::size_t index) const {
  return book_.memory_orders({index}).front().checkpoint.reference_case;
}

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
      news.measured(task, records::read_run(path), last);
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

}  // namespace peakbench::cluster
