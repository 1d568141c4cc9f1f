#include "launch/runner.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <set>
#include <system_error>
#include <thread>

#include "base/errors.h"
#include "launch/interrupt.h"
#include "launch/machine.h"
#include "launch/outcome.h"
#include "launch/worker_environment.h"
#include "launch/worker_process.h"

namespace peakbench::launch {
namespace {

void warn_of(const process::ProcessEnd& end, const Listener& listener) {
  if (!end.server_problem.empty()) listener.warn(end.server_problem);
  if (!end.log_error.empty()) listener.warn(end.log_error);
  if (end.left_running > 0)
    listener.warn(fmt::format(
        "{} that a worker started could not be ended",
        end.left_running == 1 ? "a process" : fmt::format("{} processes", end.left_running)));
}

// Variables that the dynamic loader reads; the others are read where they are first needed, and a
// fork has its own.
process::Environment of_loader(const process::Environment& environment) {
  process::Environment found;
  for (const auto& variable : environment)
    if (variable.first.starts_with("LD_")) found.push_back(variable);
  return found;
}

// Slurm ends every process of a task at its time limit, and systemd those of a service: the
// worker's end may come to us before our own signal does.
bool asked_to_end_with_us(const process::ProcessEnd& end) {
  static constexpr std::array kAsks{SIGTERM, SIGINT, SIGHUP};
  if (end.stopped != process::Stop::kNone || std::ranges::find(kAsks, end.signal) == kAsks.end())
    return false;
  constexpr auto kPatience = std::chrono::seconds(1);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!interrupted() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return interrupted();
}

// Every worker is started afresh, for whoever looks for a fault there.
bool servers_are_off() {
  const char* value = std::getenv("PEAKBENCH_FORK_SERVER");
  return value != nullptr && std::string_view(value) == "off";
}

// What ends all processes of a group: whichever comes first of a Ctrl-C and a failure.
class GroupEnd {
 public:
  bool has_come() {
    if (interrupted()) come(CutShort::kByCtrlC);
    return by_ != CutShort::kNo;
  }
  void fail() { come(CutShort::kWithGroup); }
  CutShort by() const { return by_; }

 private:
  void come(CutShort by) {
    auto none = CutShort::kNo;
    by_.compare_exchange_strong(none, by);
  }

  std::atomic<CutShort> by_{CutShort::kNo};
};

WorkerReport report_of(const Evidence& evidence, GroupEnd& group) {
  WorkerReport report;
  report.result = outcome(evidence);
  report.peak_rss_bytes = evidence.end.peak_rss_bytes;
  report.ended = evidence.end.ended;
  if (evidence.end.stopped == process::Stop::kInterrupt)
    report.cut_short = group.by();
  else if (asked_to_end_with_us(evidence.end))
    report.cut_short = CutShort::kByCtrlC;
  else if (report.result.status != records::Status::kOk)
    group.fail();
  return report;
}

struct GroupMember {
  const WorkerOrder& order;
  process::ProcessSpec spec;
  process::ForkServer* server;  // null: started afresh
};

// Runs its members beside each other: rank 0 on the thread that called, each other on its own.
class RunningGroup {
 public:
  RunningGroup(const std::vector<GroupMember>& members, const Listener& listener)
      : members_(members), listener_(listener), ends_(members.size()), thrown_(members.size()) {
    report_.ranks.resize(members.size());
  }

  GroupReport run() {
    const LoadWatch load;
    run_all();
    for (const auto& error : thrown_)
      if (error) std::rethrow_exception(error);
    std::int64_t cpu_ns = 0;
    for (const auto& end : ends_) {
      warn_of(end, listener_);
      cpu_ns += end.cpu_ns;
      report_.wall_ns = std::max(report_.wall_ns, end.wall_ns);
    }
    report_.other_busy_cores = load.other_busy_cores(cpu_ns, report_.wall_ns);
    return std::move(report_);
  }

 private:
  void run_all() {
    std::vector<std::jthread> others;
    try {
      for (std::size_t rank = 1; rank < members_.size(); ++rank) {
        ++others_at_work_;
        others.emplace_back([this, rank] {
          leave_signals_to_others();
          guarded(rank, [&] { run_one(rank, Listener{}); });
          --others_at_work_;
        });
      }
    } catch (const std::system_error& error) {
      end_.fail();
      throw HostError(
          fmt::format("cannot start a thread: {}", host_error_text(error.code().value())));
    }
    guarded(0, [this] {
      run_one(0, listener_);
      for (; others_at_work_ > 0; std::this_thread::sleep_for(std::chrono::milliseconds(10)))
        listener_.tick();
    });
  }

  void run_one(std::size_t rank, const Listener& listener) {
    const auto& member = members_[rank];
    const auto evidence =
        run_worker_process(member.order, member.spec, member.server, listener.progress, [&] {
          listener.tick();
          return end_.has_come();
        });
    ends_[rank] = evidence.end;
    report_.ranks[rank] = report_of(evidence, end_);
  }

  void guarded(std::size_t rank, const std::function<void()>& what) {
    try {
      what();
    } catch (...) {
      thrown_[rank] = std::current_exception();
      end_.fail();
    }
  }

  const std::vector<GroupMember>& members_;
  const Listener& listener_;
  GroupEnd end_;
  std::atomic<int> others_at_work_{0};
  // By rank, each written by its own thread.
  std::vector<process::ProcessEnd> ends_;
  std::vector<std::exception_ptr> thrown_;
  GroupReport report_;
};

}  // namespace

ProcessRunner::ProcessRunner(std::string peakbench_path)
    : peakbench_path_(std::move(peakbench_path)) {}

ProcessRunner::ProcessRunner(const planning::Plan& plan, std::string peakbench_path)
    : ProcessRunner(std::move(peakbench_path)) {
  std::set<std::string> workers;
  for (const auto& planned : plan.cases)
    if (!planned.program) workers.insert(worker_of(planned).program);
  for (const auto& worker : workers)
    if (access(worker.c_str(), X_OK) != 0)
      throw ConfigError(
          fmt::format("no worker program: {}: {}. It is built and installed next to peakbench; run "
                      "`peakbench doctor`.",
                      worker, std::strerror(errno)));
}

GroupReport ProcessRunner::run(const GroupOrder& order, const Listener& listener) {
  const auto ranks = order.workers.size();
  const int port = ranks > 1 ? free_port() : 0;
  std::vector<GroupMember> members;
  for (const auto& worker : order.workers) {
    write_job(worker);
    process::ProcessSpec spec;
    spec.arguments = {worker.program, worker.job_path};
    if (worker.job.program) spec.arguments = {peakbench_path_, kProgramWorker, worker.job_path};
    spec.environment = worker.environment;
    std::ranges::move(rank_environment(members.size(), ranks, port),
                      std::back_inserter(spec.environment));
    spec.log_path = worker.log_path;
    spec.timeout = order.timeout;
    spec.rss_limit_bytes = order.rss_limit_bytes / static_cast<std::int64_t>(ranks);
    members.push_back({worker, std::move(spec), order.forked ? server_for(worker) : nullptr});
  }
  return RunningGroup(members, listener).run();
}

// Null: workers are started afresh.
process::ForkServer* ProcessRunner::server_for(const WorkerOrder& worker) {
  if (servers_are_off()) return nullptr;
  const auto environment = of_loader(worker.environment);
  const std::lock_guard lock(mutex_);
  auto& server = servers_[{worker.program, environment}];
  if (!server)
    server = std::make_unique<process::ForkServer>(
        std::vector<std::string>{worker.program, "--serve"}, environment);
  return server.get();
}

}  // namespace peakbench::launch
