#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "errors/errors.h"
#include "files/atomic_file.h"
#include "json/parse_json.h"
#include "launch/interrupt.h"
#include "launch/machine_load.h"
#include "launch/outcome.h"
#include "launch/runner.h"
#include "launch/worker_result.h"
#include "result/device.h"
#include "text/bounded_text.h"
#include "text/printable.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) files::cannot_write(path, errno);
}

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

bool servers_are_off() {
  const char* value = std::getenv(kForkServerVariable);
  return value != nullptr && std::string_view(value) == "off";
}

}  // namespace

ProcessRunner::ProcessRunner(std::string worker_path) : worker_path_(std::move(worker_path)) {
  if (access(worker_path_.c_str(), X_OK) != 0)
    throw ConfigError(
        fmt::format("no worker program: {}: {}. It is built and installed beside peakbench; "
                    "`peakbench doctor` says more.",
                    worker_path_, std::strerror(errno)));
}

WorkerReport ProcessRunner::run(const WorkerOrder& order, const Listener& listener) {
  // Not written through: a plugin of the worker before may have put a pipe there.
  std::error_code ignored;
  fs::remove(order.job_path, ignored);
  fs::remove(order.job.result_path, ignored);
  write_text(order.job_path, result::to_json(order.job).dump(2) + "\n");

  Evidence evidence;
  evidence.timeout_s = order.timeout.count();
  evidence.rss_limit_bytes = order.rss_limit_bytes;
  evidence.memory_is_device = result::device_from(order.job.device).is_host_memory;
  const auto on_line = [&](const std::string& line) {
    try {
      const auto said = parse_json(line);
      if (const auto what = said.find(result::kHostFailureKey); what != said.end()) {
        evidence.host_failure = bounded(what->get<std::string>());
        return;
      }
      auto at = result::progress_from_json(said);
      at.phase = printable(at.phase);
      evidence.last = std::move(at);
    } catch (const std::exception&) {
      return;  // progress is for the eye; a bad line costs nothing
    }
    listener.progress(*evidence.last);
  };
  process::ProcessSpec spec;
  spec.arguments = {worker_path_, order.job_path};
  spec.environment = order.environment;
  spec.log_path = order.log_path;
  spec.timeout = order.timeout;
  spec.rss_limit_bytes = order.rss_limit_bytes;
  const auto kills_before = kernel_memory_kills();
  const LoadWatch load;
  evidence.end = process::run_process(
      spec, on_line,
      [&] {
        listener.tick();
        return interrupted();
      },
      server_for(order));
  evidence.kernel_ran_out = kernel_memory_kills() > kills_before;
  read_result(order.job.result_path, evidence);
  evidence.log_tail = log_tail(evidence.end.last_words);
  fs::remove(order.job.result_path, ignored);
  warn_of(evidence.end, listener);

  WorkerReport report;
  report.result = outcome(evidence);
  report.peak_rss_bytes = evidence.end.peak_rss_bytes;
  report.wall_ns = evidence.end.wall_ns;
  report.other_busy_cores = load.other_busy_cores(evidence.end.cpu_ns, evidence.end.wall_ns);
  report.interrupted =
      evidence.end.stopped == process::Stop::kInterrupt || asked_to_end_with_us(evidence.end);
  return report;
}

// Null: it is started afresh.
process::ForkServer* ProcessRunner::server_for(const WorkerOrder& order) {
  if (!order.forked || servers_are_off()) return nullptr;
  const auto environment = of_loader(order.environment);
  const std::lock_guard lock(mutex_);
  auto& server = servers_[environment];
  if (!server)
    server = std::make_unique<process::ForkServer>(
        std::vector<std::string>{worker_path_, "--serve"}, environment);
  return server.get();
}

}  // namespace peakbench::launch
