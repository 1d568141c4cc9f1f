#include "executor/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <optional>
#include <thread>

#include "errors/errors.h"
#include "executor/submission_files.h"
#include "executor/task_order.h"
#include "files/file.h"
#include "launch/host.h"
#include "launch/interrupt.h"
#include "launch/outcome.h"
#include "launch/run_folder.h"
#include "launch/session.h"
#include "text/printable.h"

namespace peakbench::executor {
namespace {

// Tells the log and the submission which cases are at work.
class Teller : public launch::RunListener {
 public:
  Teller(std::ostream& log, std::string path, int attempt)
      : log_(log), path_(std::move(path)), attempt_(attempt) {
    tell();  // that the task has begun
  }
  void run_started(std::size_t to_run, std::size_t kept) override {
    log_ << fmt::format("{} cases to run, {} kept\n", to_run, kept) << std::flush;
  }
  void worker_started(const launch::Turn& turn) override {
    cases_.push_back({turn.place, {turn.case_id, ended_}});
    tell();
  }
  void worker_progress(std::size_t, const result::Progress&) override {}
  void worker_ended(std::size_t place) override {
    cases_.remove_if([&](const auto& one) { return one.first == place; });
    ++ended_;
  }
  void warning(const std::string& text) override {
    log_ << "warning: " << text << "\n" << std::flush;
  }
  void case_ended(std::size_t, const result::CaseResult& result) override {
    log_ << fmt::format("{} {}{}{}\n", printable(result.spec.id), to_string(result.status),
                        result.reason.empty() ? "" : ": ", printable(result.reason))
         << std::flush;
  }

 private:
  void tell() {
    AtWork now{attempt_, {}};
    for (const auto& [place, one] : cases_) now.cases.push_back(one);
    write_at_work(path_, now);
  }

  std::ostream& log_;
  std::string path_;
  int attempt_;
  std::size_t ended_ = 0;
  std::list<std::pair<std::size_t, AtWork::Case>> cases_;
};

void check_build(const TaskOrder& order, const std::string& node) {
  auto other = other_build(build_of(launch::host_environment()), order.build);
  if (other.empty()) other = other_plugin(order);
  if (other.empty()) return;
  throw ConfigError(
      fmt::format("the build on {} differs from the one that submitted the run: {}. Figures of two "
                  "builds are no run: install the same Peakbench on every node, or in a folder "
                  "that all of them see.",
                  node, other));
}

// An attempt before this one may hold the folder until the file system knows that its machine is
// gone.
class PatientFolder {
 public:
  explicit PatientFolder(const std::string& path) {
    constexpr int kTries = 60;
    for (int left = kTries; !folder_; --left) {
      try {
        folder_.emplace(path);
      } catch (const HostError&) {
        throw;
      } catch (const ConfigError&) {
        if (left == 0 || launch::interrupted()) throw;
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
    }
  }
  const launch::RunFolder& get() const { return *folder_; }

 private:
  std::optional<launch::RunFolder> folder_;
};

// Rounds of two kinds of processors are no comparison: all cases of the task are timed again.
void forget_times(result::Run& run) {
  for (auto& one : run.cases) {
    if (!one.throughput) continue;
    one.throughput.reset();
    one.throughput_reason = "it was timed on another processor, and is to be timed again";
    if (std::ranges::find(run.pending, one.spec.id) == run.pending.end())
      run.pending.push_back(one.spec.id);
  }
}

// The run that is gone on with: an earlier attempt's, or what is known of the cases.
void prepare(const launch::RunFolder& folder, const TaskOrder& order) {
  auto run = folder.holds_run() ? result::read_run(folder.path()) : order.known;
  const auto cpu = launch::host_environment().at("cpu");
  const bool moved = run.environment.contains("cpu") && run.environment["cpu"] != cpu;
  if (folder.holds_run() && !moved) return;
  if (moved) forget_times(run);
  run.environment["cpu"] = cpu;
  result::write_run(run, folder.path());
}

result::Run measure(const WorkOptions& options, const SubmissionFiles& files,
                    const std::function<std::unique_ptr<launch::Runner>()>& make_runner,
                    std::ostream& log) {
  Teller teller(log, files.at_work(options.task), options.attempt);
  const auto order = read_order(files.order(options.task));
  check_build(order, options.node);
  const PatientFolder folder(files.task_folder(options.task));
  prepare(folder.get(), order);
  launch::SessionOptions session;
  session.resume = true;
  session.jobs = options.jobs;
  session.case_directory = order.run_folder;
  const auto runner = make_runner();
  return launch::run_plan(order.plan, folder.get(), session, *runner, teller);
}

TaskEnd end_of(const WorkOptions& options) {
  TaskEnd end;
  end.task = options.task;
  end.attempt = options.attempt;
  end.node = options.node;
  return end;
}

}  // namespace

bool work(const WorkOptions& options,
          const std::function<std::unique_ptr<launch::Runner>()>& make_runner, std::ostream& log) {
  const SubmissionFiles files(options.submission);
  const auto path = files.end(options.task, options.attempt);
  const launch::InterruptScope interrupts;
  auto end = end_of(options);
  log << fmt::format("task {} of {} on {}, attempt {}\n", options.task, files.folder(),
                     options.node, options.attempt + 1)
      << std::flush;
  try {
    end.run = measure(options, files, make_runner, log);
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
    end.why = launch::signal_name(launch::interrupted_by());
    log << "stopped by " << end.why << "\n" << std::flush;
  }
  write_task_end(path, end);
  return end.how == TaskEnd::How::kDone;
}

}  // namespace peakbench::executor
