// A run on the machines of a scheduler: its queue is dealt out to the tasks of job arrays, and what
// they measure is merged into one run.json as it comes. The scheduler is asked what became of
// tasks; what they measured they say themselves, in files (queue_files.h).
//
// What has no row in the end is pending, and the next call with `resume` goes on: it takes what
// tasks measured meanwhile, waits for those that still run, and submits the rest.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "executor/queue_files.h"
#include "executor/scheduler.h"
#include "executor/slurm.h"
#include "executor/tasks.h"
#include "launch/session.h"

namespace peakbench::executor {

struct QueuePace {
  std::chrono::milliseconds files{250}, files_most{2000};  // between looks at files
  std::chrono::milliseconds states{1000}, states_most{15000};
  // How long after a task's end its last files may stay unseen: what file systems over a network
  // cache (acdirmax of NFS: 60 s).
  std::chrono::milliseconds settle{60000};
};

struct QueueOptions : launch::SessionOptions {
  SlurmOptions slurm;
  Dealing dealing;
  std::string program;  // peakbench, as the machines find it
  QueuePace pace;
  // After a Ctrl-C, with words for the jobs that are left: are they to be cancelled?
  std::function<bool(const std::string&)> asks_to_cancel = [](const std::string&) { return false; };
};

// Throws what launch::run_plan() does; ConfigError where the scheduler refuses the job, or the
// machines cannot do what it asks (no access to the folder, another build): then the job is
// cancelled.
result::Run run_queue(const plan::Plan& plan, const launch::RunFolder& folder,
                      const QueueOptions& options, Scheduler& scheduler,
                      launch::RunListener& listener);

// The script that run_queue() would submit first; empty: there is nothing to run. `run`: what the
// folder holds, to be continued; null: nothing.
std::string first_script(const plan::Plan& plan, const std::string& folder,
                         const QueueOptions& options, const result::Run* run);

// Jobs of a run that the scheduler still has, as words; empty: none. Throws ConfigError where the
// scheduler does not answer.
std::string live_jobs(const std::string& folder, Scheduler& scheduler);

}  // namespace peakbench::executor
