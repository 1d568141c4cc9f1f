// One process of a group, from its job to everything that is known of its end.
#pragma once

#include <functional>

#include "launch/outcome.h"
#include "launch/runner.h"

namespace peakbench::launch {

// Writes the job for the worker to read, in place of what an earlier one left. Throws HostError.
void write_job(const WorkerOrder& order);

// `spec`: its limits. The process ends where `cancelled`, which is asked every few milliseconds,
// says so. `server`: that is to fork it; null: it is started afresh.
Evidence run_worker_process(const WorkerOrder& order, const process::ProcessSpec& spec,
                            process::ForkServer* server,
                            const std::function<void(const result::Progress&)>& progress,
                            const std::function<bool()>& cancelled);

}  // namespace peakbench::launch
