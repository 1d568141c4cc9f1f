#include "executor/run_queue.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>

#include "errors/errors.h"
#include "executor/merge.h"
#include "executor/outcomes.h"
#include "executor/task_order.h"
#include "files/file.h"
#include "launch/host.h"
#include "launch/interrupt.h"
#include "launch/run_book.h"
#include "launch/run_folder.h"
#include "text/printable.h"

namespace peakbench::executor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using launch::Group;

constexpr int kMostAttempts = 3;  // of a task that ends without a word
constexpr auto kNap = std::chrono::milliseconds(20);

struct Task {
  std::size_t number = 0;
  Group cases;
  TaskSeen seen;
  bool over = false;
  int attempt = -1;                               // the last whose end was read
  std::string stopped_by;                         // how that ended; empty: not by a signal
  std::string stamp;                              // of its run.json as it was read last
  std::optional<Clock::time_point> silent_since;  // no longer at work, and not a word of its end
};

struct Queue {
  QueueFiles files;
  std::string job;
  std::vector<Task> tasks;
};

std::size_t rounds_of(const result::CaseResult& one) {
  return one.throughput ? one.throughput->rounds.size() : 0;
}

// Changes with every writing, which makes the file anew; empty: there is none.
std::string stamp_of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return "";
  return fmt::format("{} {} {}.{}", found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

// Grows while nothing happens.
class Interval {
 public:
  Interval(std::chrono::milliseconds least, std::chrono::milliseconds most)
      : least_(least), most_(most), now_(least) {}
  bool due(Clock::time_point now) const { return now >= next_; }
  void done(Clock::time_point began, bool something) {
    const auto end = Clock::now();
    now_ = something ? least_ : std::min(most_, now_ * 3 / 2);
    constexpr int kPausePerLook = 4;  // looking takes a fifth of the time at most
    next_ = end + std::max<Clock::duration>(now_, (end - began) * kPausePerLook);
  }

 private:
  std::chrono::milliseconds least_, most_, now_;
  Clock::time_point next_;
};

ScriptPlace place_of(const QueueOptions& options, const QueueFiles& files, std::size_t tasks) {
  return {options.program, files.folder(), files.logs(), tasks};
}

int next_queue(const std::string& folder) {
  const auto numbers = queues_in(folder);
  return numbers.empty() ? 1 : numbers.back() + 1;
}

std::string count_text(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Of an earlier call's job, which one has to know of before anything is done.
std::map<std::size_t, TaskSeen> states_of(const std::string& job, std::size_t tasks,
                                          Scheduler& scheduler) {
  auto states = scheduler.states(job, tasks);
  if (!states)
    throw ConfigError(
        fmt::format("the scheduler does not say whether job {} of an earlier call "
                    "still runs. Try again later.",
                    job));
  return std::move(*states);
}

// Of a queue that an earlier call made; empty: it was not submitted, or has no job any more that
// anybody knows of.
std::string job_of(const QueueFiles& files, Scheduler& scheduler) {
  if (auto job = read_job(files); !job.empty() || !files::is_there(files.script())) return job;
  const auto found = scheduler.job_of(files.script());
  if (!found)
    throw ConfigError(fmt::format(
        "the scheduler does not say whether it has a job of {}. Try again later.", files.script()));
  if (!found->empty()) write_job(files, *found);
  return *found;
}

class QueueRun {
 public:
  QueueRun(const plan::Plan& plan, const launch::RunFolder& folder, const QueueOptions& options,
           Scheduler& scheduler, launch::RunListener& listener, launch::RunBook& book,
           std::vector<std::size_t> order)
      : plan_(plan),
        folder_(folder),
        options_(options),
        scheduler_(scheduler),
        listener_(listener),
        book_(book),
        host_(launch::host_environment()),
        order_(std::move(order)) {
    for (std::size_t i = 0; i < plan.cases.size(); ++i) index_of_[plan.cases[i].spec.id] = i;
  }

  void go() {
    for (const auto index : order_)
      if (plan_.cases[index].decided) end(index, launch::decided_case(plan_.cases[index]));
    adopt();
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
    say_what_is_short();
  }

 private:
  bool is_pending(std::size_t index) const { return book_.states().pending.contains(index); }

  Group pending_of(const Task& task) const {
    Group left;
    std::ranges::copy_if(task.cases, std::back_inserter(left),
                         [&](std::size_t index) { return is_pending(index); });
    return left;
  }

  // What earlier calls submitted: taken, and waited for where it is still at work.
  void adopt() {
    for (const auto number : queues_in(folder_.path())) {
      Queue queue{QueueFiles(folder_.path(), number), "", {}};
      const auto tasks = read_tasks(queue.files);
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        Task task;
        task.number = i;
        for (const auto& id : tasks[i])
          if (const auto found = index_of_.find(id); found != index_of_.end())
            task.cases.push_back(found->second);
        if (!pending_of(task).empty()) queue.tasks.push_back(std::move(task));
      }
      if (!queue.tasks.empty()) adopt(std::move(queue));
    }
  }

  void adopt(Queue queue) {
    // Asked first: a task that ends meanwhile has left its files.
    queue.job = job_of(queue.files, scheduler_);
    std::map<std::size_t, TaskSeen> states;
    if (!queue.job.empty())
      states = states_of(queue.job, queue.tasks.back().number + 1, scheduler_);
    adopting_ = true;
    look_at_ends(queue);
    for (auto& task : queue.tasks) look_at_progress(queue, task, true);
    adopting_ = false;
    std::erase_if(queue.tasks, [&](const Task& task) {
      const auto found = states.find(task.number);
      return task.over || found == states.end() ||
             (found->second.state != TaskState::kWaiting &&
              found->second.state != TaskState::kRunning);
    });
    if (queue.tasks.empty()) return;
    listener_.note(fmt::format("job {} of an earlier call is waited for: {}", queue.job,
                               count_text(queue.tasks.size(), "task")));
    queues_.push_back(std::move(queue));
  }

  // True: a job was submitted. What was given up stays pending.
  bool submit() {
    std::set<std::size_t> to_run = book_.states().pending;
    for (const auto index : given_up_) to_run.erase(index);
    if (to_run.empty()) return false;
    const auto dealt = deal(plan_, book_.states(), to_run, options_.dealing);
    Queue queue{QueueFiles(folder_.path(), next_queue(folder_.path())), "", {}};
    files::make_folder(queue.files.ends());
    files::make_folder(queue.files.logs());
    std::vector<std::vector<std::string>> ids;
    for (std::size_t i = 0; i < dealt.size(); ++i) {
      files::make_folder(queue.files.task_folder(i));
      write_order(queue.files.order(i), order_of(dealt[i]));
      Task task;
      task.number = i;
      task.cases = dealt[i];
      queue.tasks.push_back(std::move(task));
      ids.emplace_back();
      for (const auto index : dealt[i]) ids.back().push_back(plan_.cases[index].spec.id);
    }
    write_tasks(queue.files, ids);
    files::write_file_atomically(
        queue.files.script(),
        script_text(options_.slurm, place_of(options_, queue.files, dealt.size())));
    queue.job = scheduler_.submit(queue.files.script());
    write_job(queue.files, queue.job);
    listener_.note(fmt::format("job {}: {}, {}", queue.job, count_text(to_run.size(), "case"),
                               count_text(dealt.size(), "task")));
    queues_.push_back(std::move(queue));
    return true;
  }

  TaskOrder order_of(const Group& cases) const {
    TaskOrder order;
    order.run_folder = fs::absolute(folder_.path()).lexically_normal().string();
    order.build = build_of(host_);
    order.plan.request = plan_.request;
    order.plan.reference = plan_.reference;
    order.known.title = plan_.request.title;
    order.known.reference = plan_.reference;
    order.known.status = "interrupted";
    order.known.environment = order.build;
    order.known.settings = launch::settings_of(plan_.request);
    order.known.settings.erase("gate");
    for (const auto index : cases) {
      order.plan.cases.push_back(plan_.cases[index]);
      if (is_pending(index)) order.known.pending.push_back(plan_.cases[index].spec.id);
      const auto& known = book_.states().results[index];
      if (!known) continue;
      order.known.cases.push_back(*known);
      if (known->throughput) order.known.environment["cpu"] = cpu_of(*known);
    }
    return order;
  }

  nlohmann::json cpu_of(const result::CaseResult& one) const {
    return one.environment.value("cpu", host_.at("cpu"));
  }

  // Until every task is over, or a Ctrl-C.
  void watch() {
    Interval files(options_.pace.files, options_.pace.files_most);
    Interval states(options_.pace.states, options_.pace.states_most);
    while (is_at_work() && !launch::interrupted()) {
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
    std::erase_if(queues_, [](const Queue& queue) {
      return std::ranges::all_of(queue.tasks, [](const Task& task) { return task.over; });
    });
  }

  bool is_at_work() const {
    return std::ranges::any_of(queues_, [](const Queue& queue) {
      return std::ranges::any_of(queue.tasks, [](const Task& task) { return !task.over; });
    });
  }

  // True: something had changed.
  bool look_at_files() {
    bool something = false;
    for (auto& queue : queues_) {
      something = look_at_ends(queue) || something;
      for (auto& task : queue.tasks)
        if (!task.over && task.seen.state != TaskState::kWaiting)
          something = look_at_progress(queue, task, false) || something;
    }
    return something;
  }

  bool look_at_ends(Queue& queue) {
    bool something = false;
    for (const auto& name : ends_in(queue.files)) {
      const auto task = std::ranges::find(queue.tasks, name.task, &Task::number);
      if (task == queue.tasks.end() || task->over || name.attempt <= task->attempt) continue;
      const auto end = read_task_end(name.path);
      if (!end) continue;
      task->attempt = end->attempt;
      heard_ = something = true;
      take(queue, *task, *end);
    }
    return something;
  }

  void take(const Queue& queue, Task& task, const TaskEnd& end) {
    if (end.how == TaskEnd::How::kRefused) {
      if (adopting_) return;  // the run that is made now may be another build's
      throw ConfigError(fmt::format("task {} of job {} could not begin: {}", task.number, queue.job,
                                    printable(end.why)));
    }
    task.stopped_by = end.how == TaskEnd::How::kStopped ? end.why : "";
    if (end.run) take(task, *end.run, true);
    task.over = end.how == TaskEnd::How::kDone;
  }

  bool look_at_progress(const Queue& queue, Task& task, bool last) {
    const auto path = queue.files.task_folder(task.number) + "/run.json";
    const auto stamp = stamp_of(path);
    if (stamp.empty() || (stamp == task.stamp && !last)) return false;
    try {
      take(task, result::read_run(path), last);
    } catch (const RunFileError&) {
      return false;  // on a file system over a network: just being replaced
    }
    task.stamp = stamp;
    return true;
  }

  // `last`: what is not whole, too, as nothing more comes of this attempt.
  void take(const Task& task, const result::Run& run, bool last) {
    const std::set<std::string> unfinished(run.pending.begin(), run.pending.end());
    for (const auto& one : run.cases) {
      const auto found = index_of_.find(one.spec.id);
      if (found == index_of_.end() ||
          std::ranges::find(task.cases, found->second) == task.cases.end())
        continue;
      const auto index = found->second;
      if (adopting_ && one.status == result::Status::kHostFailure) continue;
      if (unfinished.contains(one.spec.id)) {
        if (last && is_pending(index)) take_unfinished(index, run, one);
      } else if (is_pending(index)) {
        end(index, as_measured_on(run, one, index));
      }
    }
  }

  void take_unfinished(std::size_t index, const result::Run& run, const result::CaseResult& one) {
    const auto& known = book_.states().results[index];
    if (!known || rounds_of(one) > rounds_of(*known))
      book_.take_over(index, as_measured_on(run, one, index));
  }

  result::CaseResult as_measured_on(const result::Run& run, result::CaseResult one,
                                    std::size_t index) const {
    note_machine(one, run.environment, host_);
    // The task's plan may lack the case that it is held against.
    if (one.equivalence && one.equivalence->reference_case.empty())
      one.equivalence->reference_case =
          book_.memory_orders({index}).front().checkpoint.reference_case;
    return one;
  }

  void end(std::size_t index, result::CaseResult found) {
    book_.take_over(index, std::move(found));
    book_.is_over(index);
    attempts_.erase(index);
  }

  // True: something had changed.
  bool look_at_states() {
    bool something = false;
    for (auto& queue : queues_) {
      if (std::ranges::all_of(queue.tasks, &Task::over)) continue;
      const auto states = scheduler_.states(queue.job, queue.tasks.back().number + 1);
      if (!states) {
        if (std::exchange(answered_, false))
          listener_.warning("the scheduler does not answer; results are taken as they come");
        continue;
      }
      answered_ = true;
      for (auto& task : queue.tasks) {
        if (task.over) continue;
        const auto found = states->find(task.number);
        something = see(queue, task,
                        found == states->end()
                            ? TaskSeen{TaskState::kFailed, "unknown to the scheduler", ""}
                            : found->second) ||
                    something;
      }
      tell(queue);
    }
    return something;
  }

  bool see(Queue& queue, Task& task, const TaskSeen& seen) {
    const bool changed = seen.word != task.seen.word;
    task.seen = seen;
    if (seen.state == TaskState::kNever)
      throw ConfigError(
          fmt::format("job {} will not begin: {}. Ask for what the cluster gives "
                      "(--partition, --account, --qos, --time, --constraint).",
                      queue.job, seen.where));
    if (seen.state == TaskState::kWaiting || seen.state == TaskState::kRunning) {
      task.silent_since.reset();
      return changed;
    }
    if (!task.silent_since) task.silent_since = Clock::now();
    look_at_ends(queue);
    const bool settled = Clock::now() - *task.silent_since >= options_.pace.settle;
    if (!task.over && (settled || !task.stopped_by.empty())) conclude(queue, task);
    return changed;
  }

  void tell(const Queue& queue) {
    const auto count = [&](TaskState state) {
      return static_cast<std::size_t>(std::ranges::count_if(
          queue.tasks, [&](const Task& task) { return !task.over && task.seen.state == state; }));
    };
    const auto now =
        fmt::format("job {}: {} running, {} waiting", queue.job,
                    count_text(count(TaskState::kRunning), "task"), count(TaskState::kWaiting));
    listener_.queue_state(now);
  }

  // The task has ended and left cases without a row.
  void conclude(const Queue& queue, Task& task) {
    look_at_progress(queue, task, true);
    task.over = true;
    const auto left = pending_of(task);
    if (left.empty()) return;
    const auto at_work = read_at_work(queue.files.at_work(task.number));
    heard_ = heard_ || at_work.has_value();
    const bool out_of_time =
        task.seen.state == TaskState::kTimeLimit ||
        (!task.stopped_by.empty() && task.seen.state != TaskState::kCancelled &&
         task.seen.state != TaskState::kLost);
    if (task.seen.state == TaskState::kCancelled)
      give_up(queue, task, left);
    else if (task.seen.state == TaskState::kLost)
      say(queue, task, "its cases are submitted again");
    else if (out_of_time)
      blame(queue, task, left, at_work, EndedBy::kTimeLimit);
    else if (task.seen.state == TaskState::kOutOfMemory)
      blame(queue, task, left, at_work, EndedBy::kMemory);
    else
      fail(queue, task, left);
  }

  void say(const Queue& queue, const Task& task, const std::string& what) {
    listener_.warning(fmt::format("task {} of job {} ended {}{}: {}", task.number, queue.job,
                                  task.seen.word,
                                  task.seen.where.empty() ? "" : " on " + task.seen.where, what));
  }

  void give_up(const Queue& queue, const Task& task, const Group& left) {
    given_up_.insert(left.begin(), left.end());
    say(queue, task,
        fmt::format("{} pending; --resume submits {} again",
                    left.size() == 1 ? "1 case stays" : count_text(left.size(), "case") + " stay",
                    left.size() == 1 ? "it" : "them"));
  }

  // The case that had the task from its beginning is to blame; others had no chance, and are
  // submitted again.
  void blame(const Queue& queue, const Task& task, const Group& left,
             const std::optional<AtWork>& at_work, EndedBy by) {
    bool found = false;
    if (at_work)
      for (const auto& one : at_work->cases) {
        const auto index = index_of_.find(one.id);
        if (index == index_of_.end() || !is_pending(index->second)) continue;
        if (by == EndedBy::kTimeLimit && one.before > 0)
          found = true;  // it gets a task's whole time
        if (by == EndedBy::kTimeLimit && one.before > 0) continue;
        found = true;
        end(index->second, ended_by(by, words(queue, task, by), known(index->second)));
      }
    if (!found) count_attempt(left, by, words(queue, task, by));
  }

  std::string words(const Queue& queue, const Task& task, EndedBy by) const {
    const auto which = fmt::format("task {} of job {}", task.number, queue.job);
    if (by == EndedBy::kTimeLimit)
      return fmt::format(
          "{} was stopped at the job's time limit{}", which,
          options_.slurm.time.empty() ? "" : fmt::format(" (--time {})", options_.slurm.time));
    if (by == EndedBy::kMemory)
      return fmt::format(
          "{} ran out of the memory that the job has on {}{}", which, task.seen.where,
          options_.slurm.memory.empty() ? "; ask for more with --mem"
                                        : fmt::format(" (--mem {})", options_.slurm.memory));
    return fmt::format("{} ended {}{} without a result; its log is {}", which, task.seen.word,
                       task.seen.where.empty() ? "" : " on " + task.seen.where,
                       queue.files.log(task.number));
  }

  result::CaseResult known(std::size_t index) const {
    if (const auto& known = book_.states().results[index]) return *known;
    const auto& planned = plan_.cases[index];
    result::CaseResult fresh;
    fresh.spec = planned.spec;
    fresh.added_for = planned.added_for;
    fresh.equivalence = planned.promise;
    fresh.equivalence->reference_case =
        book_.memory_orders({index}).front().checkpoint.reference_case;
    return fresh;
  }

  void fail(const Queue& queue, const Task& task, const Group& left) {
    if (!heard_)
      throw ConfigError(fmt::format(
          "task {} of job {} ended {}{} and left nothing in {}. Can the machines of the partition "
          "write there, and run {}? Its log, should it have one, is {}.",
          task.number, queue.job, task.seen.word,
          task.seen.where.empty() ? "" : " on " + task.seen.where, queue.files.folder(),
          options_.program, queue.files.log(task.number)));
    say(queue, task, "its cases are submitted again; its log is " + queue.files.log(task.number));
    count_attempt(left, EndedBy::kFailures, words(queue, task, EndedBy::kFailures));
  }

  void count_attempt(const Group& left, EndedBy by, const std::string& words) {
    for (const auto index : left)
      if (++attempts_[index] >= kMostAttempts)
        end(index, ended_by(by, fmt::format("{}; this was attempt {}", words, kMostAttempts),
                            known(index)));
  }

  void show_in_order() {
    for (; shown_ < order_.size() && !is_pending(order_[shown_]); ++shown_)
      book_.show(order_[shown_]);
    book_.save();
  }

  void show_all() {
    for (; shown_ < order_.size(); ++shown_)
      if (!is_pending(order_[shown_])) book_.show(order_[shown_]);
    book_.save_now();
  }

  // After a Ctrl-C.
  void leave() {
    look_at_files();
    std::string jobs;
    for (const auto& queue : queues_) jobs += (jobs.empty() ? "job " : ", job ") + queue.job;
    if (jobs.empty()) return;
    if (options_.asks_to_cancel(jobs)) cancel();
  }

  void cancel() {
    for (const auto& queue : queues_)
      if (!std::ranges::all_of(queue.tasks, &Task::over))
        if (const auto why = scheduler_.cancel(queue.job); !why.empty())
          listener_.warning(fmt::format("job {} could not be cancelled: {}", queue.job, why));
  }

  // Said once, and not only in every row.
  void say_what_is_short() {
    const auto& results = book_.states().results;
    const auto stopped = [&](std::size_t index) {
      const auto& one = results[index];
      return one && one->status == result::Status::kTimeout &&
             one->reason.find("the job's time limit") != std::string::npos;
    };
    if (order_.empty() || !std::ranges::all_of(order_, [&](std::size_t index) {
          return plan_.cases[index].decided || stopped(index);
        }))
      return;
    listener_.warning(fmt::format(
        "no case ended within the job's time limit{}: give --time more",
        options_.slurm.time.empty() ? "" : fmt::format(" (--time {})", options_.slurm.time)));
  }

  const plan::Plan& plan_;
  const launch::RunFolder& folder_;
  const QueueOptions& options_;
  Scheduler& scheduler_;
  launch::RunListener& listener_;
  launch::RunBook& book_;
  const nlohmann::json host_;
  const std::vector<std::size_t> order_;
  std::map<std::string, std::size_t> index_of_;
  std::vector<Queue> queues_;            // with something at work
  std::set<std::size_t> given_up_;       // by this call
  std::map<std::size_t, int> attempts_;  // that ended without a word
  std::size_t shown_ = 0;                // of order_
  bool heard_ = false;                   // a task has written into the folder
  bool answered_ = true, adopting_ = false;
};

}  // namespace

result::Run run_queue(const plan::Plan& plan, const launch::RunFolder& folder,
                      const QueueOptions& options, Scheduler& scheduler,
                      launch::RunListener& listener) {
  auto run = launch::open_run(plan, folder, options);
  auto states = launch::take_over(plan, run);
  const auto order = launch::joined(launch::pending_groups(plan, states));
  launch::RunBook book(plan, {folder, ""}, std::move(run), std::move(states), order,
                       options.parameters, listener);
  book.begin();
  QueueRun(plan, folder, options, scheduler, listener, book, order).go();
  return book.end();
}

std::string first_script(const plan::Plan& plan, const std::string& folder,
                         const QueueOptions& options, const result::Run* run) {
  auto held = run == nullptr ? result::Run{} : *run;
  const auto states = launch::take_over(plan, held);
  auto to_run = states.pending;
  std::erase_if(to_run, [&](std::size_t i) { return plan.cases[i].decided.has_value(); });
  if (to_run.empty()) return "";
  const QueueFiles files(folder, next_queue(folder));
  const auto tasks = deal(plan, states, to_run, options.dealing).size();
  return script_text(options.slurm, place_of(options, files, tasks));
}

std::string live_jobs(const std::string& folder, Scheduler& scheduler) {
  std::string jobs;
  for (const auto number : queues_in(folder)) {
    const auto job = job_of(QueueFiles(folder, number), scheduler);
    if (job.empty()) continue;
    const auto states = states_of(job, 0, scheduler);
    const bool live = std::ranges::any_of(states, [](const auto& one) {
      return one.second.state == TaskState::kWaiting || one.second.state == TaskState::kRunning;
    });
    if (live) jobs += (jobs.empty() ? "" : ", ") + job;
  }
  return jobs;
}

}  // namespace peakbench::executor
