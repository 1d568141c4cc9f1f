#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host/process.h"
#include "launch/outcome.h"
#include "launch/runner.h"
#include "planning/worker.h"

namespace peakbench::launch {

// A worker's process, from its job to everything that is known of its end.

// Writes the job for the worker to read, in place of what an earlier one left. Throws HostError.
void write_job(const WorkerOrder& order);

// `spec`: its limits. Ends the process when `cancelled`, asked every few milliseconds, returns
// true. `server`: forks it; null: it is started afresh.
Evidence run_worker_process(const WorkerOrder& order, const process::ProcessSpec& spec,
                            process::ForkServer* server,
                            const std::function<void(const records::Progress&)>& progress,
                            const std::function<bool()>& cancelled);

// The worker started without a case, for `doctor`.

struct WorkerSaid {
  std::string text;  // all that it printed
  std::string end;   // a message: its last lines, or why it could not be started
  std::int64_t wall_ns = 0;
};

// Within a minute.
WorkerSaid ask_worker(const std::string& worker, const std::vector<std::string>& arguments,
                      const process::Environment& environment);

// A worker under a debugger, in the place of the program that was asked for it.

// The order for a job that a run has left, for this worker. Its results go to `folder`, and it is
// not compared with another case. Throws ConfigError: no such file, no job.
WorkerOrder order_from_file(const std::string& job_path, const std::string& folder,
                            const planning::Worker& worker);

// The command of gdb or lldb (unknown debuggers get gdb's arguments) for the worker, its job and
// the variables from the launcher, which only the worker gets. `more`: arguments for the debugger,
// inserted before these.
std::vector<std::string> debugger_command(const std::string& debugger,
                                          const std::vector<std::string>& more,
                                          const WorkerOrder& order);

// Writes the job, and becomes the command. Throws ConfigError where that cannot be.
[[noreturn]] void become(const std::vector<std::string>& command, const WorkerOrder& order);

}  // namespace peakbench::launch
