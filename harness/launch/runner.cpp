#include "launch/runner.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "launch/interrupt.h"
#include "launch/machine.h"
#include "launch/outcome.h"
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

WorkerReport report_of(const Evidence& evidence) {
  const auto& end = evidence.end;
  WorkerReport report;
  report.result = outcome(evidence);
  report.interrupted = end.stopped == process::Stop::kInterrupt || asked_to_end_with_us(end);
  report.peak_rss_bytes = end.peak_rss_bytes;
  report.wall_ns = end.wall_ns;
  return report;
}

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

WorkerReport ProcessRunner::run(const WorkerOrder& order, const Listener& listener) {
  write_job(order);
  process::ProcessSpec spec;
  spec.arguments = {order.program, order.job_path};
  if (order.job.program) spec.arguments = {peakbench_path_, kProgramWorker, order.job_path};
  spec.environment = order.environment;
  spec.log_path = order.log_path;
  spec.timeout = order.timeout;
  spec.rss_limit_bytes = order.rss_limit_bytes;
  auto* const server = order.forked ? server_for(order) : nullptr;
  const LoadWatch load;
  const auto evidence = run_worker_process(order, spec, server, listener.progress, [&] {
    listener.tick();
    return interrupted();
  });
  auto report = report_of(evidence);
  warn_of(evidence.end, listener);
  report.other_busy_cores = load.other_busy_cores(evidence.end.cpu_ns, report.wall_ns);
  return report;
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
