// Runs a worker on one job to its end. An interface, so that tests run everything above it without
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
#include <utility>

#include "host/fork_server.h"
#include "host/process.h"
#include "planning/plan.h"
#include "records/job.h"

namespace peakbench::launch {

struct WorkerOrder {
  std::string program;  // peakbench-worker; of a program's job it is not asked
  records::Job job;
  std::string job_path;  // where the job is written for the worker to read
  std::string log_path;
  process::Environment environment;
  // Forks a process that has the libraries loaded: quicker, with the same figures. Not for timing,
  // which must share nothing with other processes.
  bool forked = false;
  std::chrono::seconds timeout{0};   // 0: none
  std::int64_t rss_limit_bytes = 0;  // 0: none
};

struct WorkerReport {
  // Whatever happened: an outcome, and a reason where it is not ok.
  records::WorkerResult result;
  bool interrupted = false;  // by Ctrl-C: the result says nothing of the case
  std::int64_t peak_rss_bytes = 0;
  std::int64_t wall_ns = 0;
  std::optional<double> other_busy_cores;  // that processes of others kept busy meanwhile
};

// The listener of a running worker. `tick` is called every few milliseconds, with or without
// progress. `warn` is called after the worker has ended, with problems other than the case's own.
struct Listener {
  std::function<void(const records::Progress&)> progress = [](const records::Progress&) {};
  std::function<void()> tick = [] {};
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

// From several threads at once, where several workers are to run at once. A listener hears all on
// the thread that called.
class Runner {
 public:
  virtual ~Runner() = default;
  // Throws HostError where the machine refuses the files that it needs.
  virtual WorkerReport run(const WorkerOrder& order, const Listener& listener) = 0;
};

// Of `peakbench` itself: runs the program of the job that follows.
inline constexpr const char* kProgramWorker = "__program";

// Starts `peakbench-worker JOB.json`, or has `peakbench-worker --serve` fork it; for a program
// `peakbench __program JOB.json`.
class ProcessRunner : public Runner {
 public:
  explicit ProcessRunner(std::string peakbench_path = "");
  // Throws ConfigError where a worker of the plan's is not there.
  ProcessRunner(const planning::Plan& plan, std::string peakbench_path);
  WorkerReport run(const WorkerOrder& order, const Listener& listener) override;

 private:
  process::ForkServer* server_for(const WorkerOrder& worker);

  std::string peakbench_path_;
  std::mutex mutex_;
  // By the worker, and what must be in its environment before libraries are loaded.
  std::map<std::pair<std::string, process::Environment>, std::unique_ptr<process::ForkServer>>
      servers_;
};

}  // namespace peakbench::launch
