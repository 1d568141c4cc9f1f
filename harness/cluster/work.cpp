#include "cluster/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <list>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "base/errors.h"
#include "base/file.h"
#include "base/printable.h"
#include "cluster/submission_files.h"
#include "cluster/task_order.h"
#include "launch/interrupt.h"
#include "launch/outcome.h"
#include "launch/run_folder.h"
#include "launch/session.h"

namespace peakbench::cluster {
namespace {

using Clock = std::chrono::steady_clock;

// Tries it again while somebody else has the folder. Gives why it was not taken; empty: it was.
std::string taken(std::optional<launch::RunFolder>& folder, const std::string& path,
                  Clock::time_point until) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(200);
  for (;;) {
    try {
      folder.emplace(path);
      return "";
    } catch (const HostError&) {
      throw;
    } catch (const ConfigError& error) {
      if (Clock::now() >= until || launch::interrupted()) return error.what();
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
}

// The folder of one attempt at a task, and the attempts next to it. A scheduler begins a task again
// when it has given up its machine. That machine may be dead, and its lock on a network file system
// may never be released; or it only lost the scheduler, and still works.
class AttemptFolder {
 public:
  // Makes it, which tells earlier attempts to end. Throws HostError where it cannot be made.
  // `files` must outlive it.
  AttemptFolder(const SubmissionFiles& files, std::size_t task, int attempt)
      : files_(files), task_(task), attempt_(attempt) {
    files::make_folder(files_.attempt_folder(task_, attempt_));
  }

  // Whether no later attempt has begun: else this one is to end.
  bool is_last() const {
    const auto attempts = attempts_in(files_, task_);
    return attempts.empty() || attempts.back() <= attempt_;
  }

  // Takes the folder, and waits until those before this one have given theirs back: `patience` at
  // most, as one that is dead never does. Less at a Ctrl-C. Throws HostError where a process of the
  // same attempt holds it.
  const launch::RunFolder& take(std::chrono::milliseconds patience) {
    const auto until = Clock::now() + patience;
    const auto why = taken(folder_, files_.attempt_folder(task_, attempt_), until);
    // Not refused: another attempt may do better.
    if (!folder_) throw HostError(why);
    for (const auto earlier : attempts_in(files_, task_)) {
      if (earlier >= attempt_) break;
      std::optional<launch::RunFolder> given_back;
      taken(given_back, files_.attempt_folder(task_, earlier), until);
    }
    return *folder_;
  }

  // Of this attempt or the last one before it that has one: what is gone on with.
  std::optional<records::Run> newest_run() const {
    auto attempts = attempts_in(files_, task_);
    for (; !attempts.empty(); attempts.pop_back()) {
      const auto folder = files_.attempt_folder(task_, attempts.back());
      if (attempts.back() > attempt_ || !files::is_there(folder + "/run.json")) continue;
      try {
        return records::read_run(folder);
      } catch (const RunFileError&) {
        // Of a machine that is lost: half there. Its cases are measured again.
      }
    }
    return std::nullopt;
  }

 private:
  const SubmissionFiles& files_;
  std::size_t task_;
  int attempt_;
  std::optional<launch::RunFolder> folder_;
};

// Tells the log and the submission which cases are at work.
class Teller : public launch::RunListener {
 public:
  Teller(std::ostream& log, std::string path, const AttemptFolder& folder)
      : log_(log), path_(std::move(path)), folder_(folder) {
    tell();  // that the task has begun
  }
  bool is_over() const { return over_; }  // as a later attempt has begun

  void run_started(std::size_t to_run, std::size_t kept) override {
    log_ << fmt::format("{} cases to run, {} kept\n", to_run, kept) << std::flush;
  }
  void worker_started(const launch::Turn& turn) override {
    cases_.push_back({turn.place, {turn.case_id, ended_}});
    tell();
  }
  void worker_progress(std::size_t, const records::Progress&) override {}
  void tick() override {
    constexpr auto kBetweenLooks = std::chrono::seconds(2);
    if (const auto now = Clock::now(); now >= next_look_) {
      next_look_ = now + kBetweenLooks;
      end_unless_last();
    }
  }
  void worker_ended(std::size_t place) override {
    cases_.remove_if([&](const auto& one) { return one.first == place; });
    ++ended_;
    end_unless_last();
  }
  void warning(const std::string& text) override {
    log_ << "warning: " << text << "\n" << std::flush;
  }
  void case_ended(std::size_t, const records::CaseResult& result) override {
    log_ << fmt::format("{} {}{}{}\n", printable(result.spec.id), to_string(result.status),
                        result.reason.empty() ? "" : ": ", printable(result.reason))
         << std::flush;
  }

 private:
  void tell() {
    AtWork now;
    for (const auto& [place, one] : cases_) now.cases.push_back(one);
    write_at_work(path_, now);
  }

  // The scheduler has given this machine up: what it measured is kept, and no file of a case is
  // written by two.
  void end_unless_last() {
    if (over_ || folder_.is_last()) return;
    over_ = true;
    log_ << "a later attempt at the task has begun\n" << std::flush;
    launch::interrupt_as(SIGTERM);
  }

  std::ostream& log_;
  std::string path_;
  const AttemptFolder& folder_;
  Clock::time_point next_look_;
  bool over_ = false;
  std::size_t ended_ = 0;
  std::list<std::pair<std::size_t, AtWork::Case>> cases_;
};

void check_build(const TaskOrder& order, const std::string& node) {
  auto other = other_build(build_of(launch::host_environment(order.plan)), order.build);
  if (other.empty()) other = other_plugin(order);
  if (other.empty()) return;
  throw ConfigError(
      fmt::format("the build on {} differs from the one that submitted the run: {}. Figures of two "
                  "builds are no run: install the same Peakbench on every node, or in a folder "
                  "that all of them see.",
                  node, other));
}

// Rounds of two kinds of processors are no comparison: all cases of the task are timed again.
void forget_times(records::Run& run) {
  for (auto& one : run.cases) {
    if (!one.throughput) continue;
    one.throughput.reset();
    one.throughput_reason = "it was timed on another processor, and is to be timed again";
    if (std::ranges::find(run.pending, one.spec.id) == run.pending.end())
      run.pending.push_back(one.spec.id);
  }
}

// The run that is gone on with: an earlier attempt's, or what is known of the cases.
void prepare(const AttemptFolder& attempt, const launch::RunFolder& folder,
             const TaskOrder& order) {
  auto run = attempt.newest_run().value_or(order.known);
  const auto cpu = launch::host_environment(order.plan).at("cpu");
  if (run.environment.contains("cpu") && run.environment["cpu"] != cpu) forget_times(run);
  run.environment["cpu"] = cpu;
  records::write_run(run, folder.path());
}

// The run, and whether it is over as Teller says.
std::pair<records::Run, bool> measure(const WorkOptions& options, const SubmissionFiles& files,
                                      const Hands& hands, std::ostream& log) {
  auto order = read_order(files.order(options.task));
  const auto worker = std::make_shared<const planning::Worker>(hands.worker());
  for (auto& planned : order.plan.cases) planned.worker = worker;
  AttemptFolder attempt(files, options.task, options.attempt);
  Teller teller(log, files.at_work(options.task, options.attempt), attempt);
  check_build(order, options.node);
  const auto& folder = attempt.take(options.patience);
  prepare(attempt, folder, order);
  launch::SessionOptions session;
  session.resume = true;
  session.jobs = options.jobs;
  session.case_directory = order.run_folder;
  const auto runner = hands.runner(order.plan);
  auto run = launch::run_plan(order.plan, folder, session, *runner, teller);
  return {std::move(run), teller.is_over()};
}

}  // namespace

bool work(const WorkOptions& options, const Hands& hands, std::ostream& log) {
  const SubmissionFiles files(options.submission);
  const auto path = files.end(options.task, options.attempt);
  const launch::InterruptScope interrupts;
  TaskEnd end{options.task, options.attempt, TaskEnd::How::kDone, "", options.node, {}};
  log << fmt::format("task {} of {} on {}, attempt {}\n", options.task, files.folder(),
                     options.node, options.attempt + 1)
      << std::flush;
  bool is_over = false;
  try {
    std::tie(end.run, is_over) = measure(options, files, hands, log);
  } catch (const HostError&) {
    throw;  // a full disk: another attempt may do better
  } catch (const ConfigError& error) {
    end.how = TaskEnd::How::kRefused;
    end.why = error.what();
    write_task_end(path, end);
    throw;
  }
  if (end.run->status == "interrupted") {
    end.how = TaskEnd::How::kStopped;
    end.why = is_over ? "a later attempt" : launch::signal_name(launch::interrupted_by());
    log << "stopped by " << end.why << "\n" << std::flush;
  }
  write_task_end(path, end);
  return end.how == TaskEnd::How::kDone;
}

}  // namespace peakbench::cluster
