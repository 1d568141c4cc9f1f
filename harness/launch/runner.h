// Runs one worker process on one job. An interface, so that tests run everything above it without
// processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "process/fork_server.h"
#include "process/process.h"
#include "result/job.h"

namespace peakbench::launch {

struct WorkerOrder {
  result::Job job;
  std::string job_path;  // where the job is written for the worker to read
  std::string log_path;
  process::Environment environment;
  // From a process that has the libraries loaded: quicker, and the same figures. Not for what is
  // timed: that shares nothing with anybody.
  bool forked = false;
  std::chrono::seconds timeout{0};   // 0: none
  std::int64_t rss_limit_bytes = 0;  // 0: none
};

struct WorkerReport {
  result::WorkerResult result;  // whatever happened: an outcome, and a reason where it is not ok
  std::int64_t peak_rss_bytes = 0;
  std::int64_t wall_ns = 0;
  std::optional<double> other_busy_cores;  // that other processes kept busy meanwhile
  bool interrupted = false;                // ended by Ctrl-C; `result` says nothing then
};

// Who hears of a worker at work. `tick` comes every few milliseconds, progress or not; `warn` of
// what went wrong beside the case itself, after the worker has ended.
struct Listener {
  std::function<void(const result::Progress&)> progress = [](const result::Progress&) {};
  std::function<void()> tick = [] {};
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

// From several threads at once, where several workers are to run at once.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual WorkerReport run(const WorkerOrder& order, const Listener& listener) = 0;
};

// Off: every worker is started afresh, for whoever looks for a fault there.
inline constexpr const char* kForkServerVariable = "PEAKBENCH_FORK_SERVER";

// Starts `peakbench-worker JOB.json`, or has `peakbench-worker --serve` fork it.
class ProcessRunner : public Runner {
 public:
  // Throws ConfigError where there is no such program.
  explicit ProcessRunner(std::string worker_path);
  WorkerReport run(const WorkerOrder& order, const Listener& listener) override;

 private:
  process::ForkServer* server_for(const WorkerOrder& order);

  std::string worker_path_;
  std::mutex mutex_;
  // By what must be in their environment before libraries are loaded.
  std::map<process::Environment, std::unique_ptr<process::ForkServer>> servers_;
};

}  // namespace peakbench::launch
