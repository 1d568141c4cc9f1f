// Runs the processes of a group on one job to their end. An interface, so that tests run everything
// above it without processes.
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
#include <vector>

#include "host/fork_server.h"
#include "host/process.h"
#include "planning/plan.h"
#include "records/job.h"

namespace peakbench::launch {

// One process.
struct WorkerOrder {
  std::string program;  // peakbench-worker; of a program's job it is not asked
  records::Job job;
  std::string job_path;  // where the job is written for the worker to read
  std::string log_path;
  process::Environment environment;
};

// The processes of a case, by rank. In a group of several, their environment also has the variables
// of PyTorch's launchers (worker_environment.h).
struct GroupOrder {
  std::vector<WorkerOrder> workers;  // one at least
  // Forks a process that has the libraries loaded: quicker, with the same figures. Not for timing,
  // which must share nothing with other processes.
  bool forked = false;
  // Of all together. Of the memory each has its even share: ranks do the same work.
  std::chrono::seconds timeout{0};   // 0: none
  std::int64_t rss_limit_bytes = 0;  // 0: none
};

// Who ended a process before its own end.
enum class CutShort {
  kNo,
  kByCtrlC,
  kWithGroup,  // another of its group had failed
};

struct WorkerReport {
  // Whatever happened: an outcome, and a reason where it is not ok. It says nothing of a process
  // that was cut short.
  records::WorkerResult result;
  CutShort cut_short = CutShort::kNo;
  std::int64_t peak_rss_bytes = 0;
  std::chrono::steady_clock::time_point ended;
};

// The first failure ends the group. What the group's outcome is, is in run_group.h.
struct GroupReport {
  std::vector<WorkerReport> ranks;
  std::int64_t wall_ns = 0;                // of the longest
  std::optional<double> other_busy_cores;  // that processes of others kept busy meanwhile
};

// The listener of a running group; its progress is that of rank 0. `tick` is called every few
// milliseconds, with or without progress. `warn` is called after the group has ended, with problems
// other than the case's own.
struct Listener {
  std::function<void(const records::Progress&)> progress = [](const records::Progress&) {};
  std::function<void()> tick = [] {};
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

// From several threads at once, where several groups are to run at once. A listener hears all on
// the thread that called.
class Runner {
 public:
  virtual ~Runner() = default;
  // Throws HostError where the machine refuses the files or the threads that it needs.
  virtual GroupReport run(const GroupOrder& order, const Listener& listener) = 0;
};

// Of `peakbench` itself: runs the program of the job that follows.
inline constexpr const char* kProgramWorker = "__program";

// Starts `peakbench-worker JOB.json` for each rank, or has `peakbench-worker --serve` fork it; for
// a program `peakbench __program JOB.json`.
class ProcessRunner : public Runner {
 public:
  explicit ProcessRunner(std::string peakbench_path = "");
  // Throws ConfigError where a worker of the plan's is not there.
  ProcessRunner(const planning::Plan& plan, std::string peakbench_path);
  GroupReport run(const GroupOrder& order, const Listener& listener) override;

 private:
  process::ForkServer* server_for(const WorkerOrder& worker);

  std::string peakbench_path_;
  std::mutex mutex_;
  // By the worker, and what must be in its environment before libraries are loaded.
  std::map<std::pair<std::string, process::Environment>, std::unique_ptr<process::ForkServer>>
      servers_;
};

}  // namespace peakbench::launch
