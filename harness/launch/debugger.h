// A worker under a debugger, in the place of the program that was asked for it.
#pragma once

#include <string>
#include <vector>

#include "launch/runner.h"
#include "manifest/worker.h"

namespace peakbench::launch {

// The order for a job that a run has left, with its results in `folder` and no other case to be
// held against, for this worker. Throws ConfigError: no such file, no job.
WorkerOrder order_from_file(const std::string& job_path, const std::string& folder,
                            const manifest::Worker& worker);

// What is run: gdb or lldb (a program of any other name is spoken to as gdb is), told the worker,
// its job and the variables that the launcher gives it; these are the worker's alone. `more`: for
// the debugger, before that.
std::vector<std::string> debugger_command(const std::string& debugger,
                                          const std::vector<std::string>& more,
                                          const WorkerOrder& order);

// Writes the job, and becomes the command. Throws ConfigError where that cannot be.
[[noreturn]] void become(const std::vector<std::string>& command, const WorkerOrder& order);

}  // namespace peakbench::launch
