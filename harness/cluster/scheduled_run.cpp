#include "cluster/scheduled_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <thread>

#include "base/errors.h"
#include "base/printable.h"
#include "cluster/attempt.h"
#include "cluster/watch.h"
#include "launch/interrupt.h"
#include "launch/run_book.h"
#include "launch/run_folder.h"

namespace peakbench::cluster {
namespace {

using Clock = std::chrono::steady_clock;
using launch::Cases;

constexpr auto kNap = std::chrono::milliseconds(20);

class ScheduledRun {
 public:
  ScheduledRun(const planning::Plan& plan, const launch::RunFolder& folder,
               const ScheduledOptions& options, Scheduler& scheduler, launch::RunListener& listener,
               launch::RunBook& book, Cases order)
      : plan_(plan),
        folder_(folder),
        options_(options),
        scheduler_(scheduler),
        listener_(listener),
        book_(book),
        order_(std::move(order)),
        intake_(plan, book),
        states_(scheduler, listener) {}

  void go() {
    for (const auto index : order_)
      if (plan_.cases[index].decided) intake_.end(index, launch::decided_case(plan_.cases[index]));
    adopt_all();
    try {
      do watch();
      while (!launch::interrupted() && submit());
    } catch (const HostError&) {
      throw;  // a disk that is full here: the tasks go on, and the next call takes what they
              // measured
    } catch (...) {
      cancel();
      throw;
    }
    if (launch::interrupted()) leave();
    show_all();
    if (const auto words = short_time_text(plan_, book_.states(), order_, options_.submit.slurm);
        !words.empty())
      listener_.warning(words);
  }

 private:
  TaskNews news(const Submission& submission, From from) {
    return {[this, from](const Task& task, const records::Run& run, bool last) {
              intake_.take(task.cases, run, from, last);
            },
            [&submission, from](const Task& task, const std::string& why) {
              if (from == From::kEarlierCall) return;  // this run may be another build's
              throw ConfigError(
                  fmt::format("{} could not begin: {}", name_of(submission, task), printable(why)));
            }};
  }

  // Nothing is submitted for an earlier call's cases before Slurm has said what became of its jobs.
  void adopt_all() {
    for (const auto number : submissions_in(folder_.path())) try {
        adopt({folder_.path(), number});
      } catch (const ConfigError&) {
        if (!launch::interrupted()) throw;
        return;  // it was not given the time to answer
      }
  }

  // What an earlier call submitted: taken, and waited for where it is still at work.
  void adopt(const SubmissionFiles& files) {
    auto submission = read_submission(files, intake_.index_of());
    std::erase_if(submission.tasks,
                  [&](const Task& task) { return intake_.pending_of(task.cases).empty(); });
    if (submission.tasks.empty()) return;
    // Asked first: a task that ends meanwhile has left its files.
    submission.job = job_of(files, scheduler_);
    std::map<std::size_t, TaskSeen> states;
    if (!submission.job.empty())
      states = states_of(submission.job, submission.tasks.back().number + 1, scheduler_);
    const auto earlier = news(submission, From::kEarlierCall);
    heard_ = read_ends(submission, earlier) || heard_;
    for (auto& task : submission.tasks) read_progress(submission, task, true, earlier);
    std::erase_if(submission.tasks, [&](const Task& task) {
      const auto found = states.find(task.number);
      return task.over || found == states.end() ||
             stage_of(found->second.state, false, false) != Stage::kAtWork;
    });
    if (submission.tasks.empty()) return;
    listener_.note(fmt::format("job {} of an earlier call is waited for: {}", submission.job,
                               count_text(submission.tasks.size(), "task")));
    submissions_.push_back(std::move(submission));
  }

  // True: a job was submitted. What was given up stays pending.
  bool submit() {
    std::set<std::size_t> to_run = book_.states().pending;
    for (const auto index : given_up_) to_run.erase(index);
    if (to_run.empty()) return false;
    auto submission =
        cluster::submit(plan_, book_.states(), to_run, folder_.path(), options_.submit, scheduler_);
    listener_.note(fmt::format("job {}: {}, {}", submission.job, count_text(to_run.size(), "case"),
                               count_text(submission.tasks.size(), "task")));
    submissions_.push_back(std::move(submission));
    return true;
  }

  // Until every task is over, or a Ctrl-C.
  void watch() {
    Interval files(options_.pace.files, options_.pace.files_most);
    Interval states(options_.pace.states, options_.pace.states_most);
    while (!std::ranges::all_of(submissions_, is_over) && !launch::interrupted()) {
      const auto now = Clock::now();
      if (files.due(now)) {
        const bool something = look_at_files();
        files.done(now, something);
        if (something) show_in_order();
      } else if (states.due(now)) {
        states.done(now, look_at_states());
      } else {
        std::this_thread::sleep_for(kNap);
      }
      listener_.tick();
      book_.tick();
    }
    std::erase_if(submissions_, is_over);
  }

  // Each true where something had changed.
  bool look_at_files() {
    bool something = false;
    for (auto& submission : submissions_) {
      something = look_at_ends(submission) || something;
      for (auto& task : submission.tasks)
        if (!task.over && task.seen.state != TaskState::kWaiting)
          something = read_progress(submission, task, false, news(submission, From::kThisCall)) ||
                      something;
    }
    return something;
  }

  bool look_at_ends(Submission& submission) {
    const bool something = read_ends(submission, news(submission, From::kThisCall));
    heard_ = heard_ || something;
    return something;
  }

  bool look_at_states() {
    bool something = false;
    for (auto& submission : submissions_)
      if (!is_over(submission))
        something =
            states_.look(submission, [&](Task& task) { see(submission, task); }) || something;
    return something;
  }

  void see(Submission& submission, Task& task) {
    const auto stage = stage_of(task.seen.state, false, false);
    if (stage == Stage::kNever)
      throw ConfigError(
          fmt::format("job {} will not begin: {}. Ask for what the cluster gives "
                      "(--partition, --account, --qos, --time, --constraint).",
                      submission.job, task.seen.where));
    if (stage == Stage::kAtWork) {
      task.silent_since.reset();
      if (task.seen.state == TaskState::kWaiting) task.stopped_by.clear();  // it was begun again
      return;
    }
    if (!task.silent_since) task.silent_since = Clock::now();
    look_at_ends(submission);
    if (task.over) return;
    if (is_stopped(task)) states_.ask_for_restarts(submission, task);
    const bool settled = Clock::now() - *task.silent_since >= options_.pace.settle;
    if (stage_of(task.seen.state, is_stopped(task), settled) == Stage::kEnded)
      take_end(submission, task);
  }

  // The task has ended and may have left cases without a row.
  void take_end(const Submission& submission, Task& task) {
    read_progress(submission, task, true, news(submission, From::kThisCall));
    task.over = true;
    const auto attempt = attempt_of(submission, task);
    const auto conclusion = conclude(attempt);
    tell(conclusion.end, attempt.left.size(), submission, task);
    if (conclusion.end == AttemptEnd::kCancelled)
      for (const auto& one : attempt.left) given_up_.insert(one.index);
    for (const auto index : conclusion.failed) ++failures_[index];
    for (const auto& one : conclusion.over) {
      auto reason = reason_of(one.by, submission, task, options_.submit.slurm);
      if (one.after_attempts) reason += fmt::format("; this was attempt {}", kMostAttempts);
      intake_.end(one.index, ended_by(one.by, reason, intake_.known(one.index)));
    }
  }

  Attempt attempt_of(const Submission& submission, const Task& task) {
    Attempt attempt{task.seen.state, is_stopped(task), false, {}};
    for (const auto index : intake_.pending_of(task.cases))
      attempt.left.push_back({index, failures_[index], std::nullopt});
    if (attempt.left.empty()) return attempt;
    const auto at_work = read_at_work(submission.files.at_work(task.number, task.begun));
    heard_ = heard_ || at_work || !attempts_in(submission.files, task.number).empty();
    attempt.heard = heard_;
    if (at_work)
      for (const auto& one : at_work->cases)
        for (auto& left : attempt.left)
          if (plan_.cases[left.index].spec.id == one.id) left.begun_after = one.before;
    return attempt;
  }

  void tell(AttemptEnd end, std::size_t left, const Submission& submission, const Task& task) {
    const auto warn = [&](const std::string& what) {
      listener_.warning(warning_of(submission, task, what));
    };
    if (end == AttemptEnd::kUnheard)
      throw ConfigError(unheard_text(submission, task, options_.submit.program));
    if (end == AttemptEnd::kCancelled)
      warn(left == 1 ? "1 case stays pending; --resume submits it again"
                     : fmt::format("{} cases stay pending; --resume submits them again", left));
    if (end == AttemptEnd::kLost) warn("its cases are submitted again");
    if (end == AttemptEnd::kFailed)
      warn("its cases are submitted again; its log is " + submission.files.log(task.number));
  }

  void show_in_order() {
    for (; shown_ < order_.size() && !intake_.is_pending(order_[shown_]); ++shown_)
      book_.show(order_[shown_]);
    book_.save();
  }

  void show_all() {
    for (; shown_ < order_.size(); ++shown_)
      if (!intake_.is_pending(order_[shown_])) book_.show(order_[shown_]);
    book_.save_now();
  }

  // After a Ctrl-C.
  void leave() {
    look_at_files();
    std::string jobs;
    for (const auto& submission : submissions_)
      jobs += (jobs.empty() ? "job " : ", job ") + submission.job;
    if (jobs.empty()) return;
    if (options_.asks_to_cancel(jobs)) cancel();
  }

  void cancel() {
    for (const auto& submission : submissions_)
      if (!is_over(submission))
        if (const auto why = scheduler_.cancel(submission.job); !why.empty())
          listener_.warning(fmt::format("job {} could not be cancelled: {}", submission.job, why));
  }

  const planning::Plan& plan_;
  const launch::RunFolder& folder_;
  const ScheduledOptions& options_;
  Scheduler& scheduler_;
  launch::RunListener& listener_;
  launch::RunBook& book_;
  const Cases order_;
  Intake intake_;
  StateWatch states_;
  std::vector<Submission> submissions_;  // with something at work
  std::set<std::size_t> given_up_;       // by this call
  std::map<std::size_t, int> failures_;  // attempts that ended without a word
  std::size_t shown_ = 0;                // of order_
  bool heard_ = false;                   // a task has written into the folder
};

}  // namespace

records::Run run_scheduled(const planning::Plan& plan, const launch::RunFolder& folder,
                           const ScheduledOptions& options, Scheduler& scheduler,
                           launch::RunListener& listener) {
  auto run = launch::open_run(plan, folder, options);
  auto states = launch::take_over(plan, run);
  for (const auto& words : words_on_outdated(states)) listener.warning(words);
  const auto order = launch::joined(launch::pending_groups(plan, states));
  launch::RunBook book(plan, {folder, ""}, std::move(run), std::move(states), order,
                       options.parameters, listener);
  book.begin();
  ScheduledRun(plan, folder, options, scheduler, listener, book, order).go();
  return book.end();
}

}  // namespace peakbench::cluster
