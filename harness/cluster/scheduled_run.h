// A run on the machines of a scheduler. Its cases are divided among the tasks of job arrays
// (submission.h), and their results are merged into one run.json as they arrive. The scheduler
// reports the states of tasks; the results are in the tasks' own files.
//
// Cases without a row at the end are pending. The next call with `resume` takes what tasks have
// measured meanwhile, waits for running tasks, and submits the rest.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cluster/scheduler.h"
#include "cluster/submission.h"
#include "launch/session.h"

namespace peakbench::cluster {

struct WatchPace {
  std::chrono::milliseconds files{250}, files_most{2000};  // between reads of files
  std::chrono::milliseconds states{1000}, states_most{15000};
  // How long after a task's end its last files may stay unseen: what file systems over a network
  // cache (acdirmax of NFS: 60 s).
  std::chrono::milliseconds settle{60000};
};

struct ScheduledOptions : launch::SessionOptions {
  SubmitOptions submit;
  WatchPace pace;
  // After a Ctrl-C, with words for the jobs that are left: are they to be cancelled?
  std::function<bool(const std::string&)> asks_to_cancel = [](const std::string&) { return false; };
};

// Throws what launch::run_plan() does. Throws ConfigError if the scheduler refuses the job, or if
// its machines cannot run it (no access to the folder, another build); the job is then cancelled.
records::Run run_scheduled(const planning::Plan& plan, const launch::RunFolder& folder,
                           const ScheduledOptions& options, Scheduler& scheduler,
                           launch::RunListener& listener);

}  // namespace peakbench::cluster
