// A run on the machines of a scheduler: its cases are dealt out to the tasks of job arrays
// (submission.h), and what these measure is merged into one run.json as it comes. The scheduler is
// asked what became of tasks; what they measured they say themselves, in files.
//
// What has no row in the end is pending, and the next call with `resume` goes on: it takes what
// tasks measured meanwhile, waits for those that still run, and submits the rest.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cluster/scheduler.h"
#include "cluster/submission.h"
#include "launch/session.h"

namespace peakbench::cluster {

struct WatchPace {
  std::chrono::milliseconds files{250}, files_most{2000};  // between looks at files
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

// Throws what launch::run_plan() does; ConfigError where the scheduler refuses the job, or the
// machines cannot do what it asks (no access to the folder, another build): then the job is
// cancelled.
records::Run run_scheduled(const planning::Plan& plan, const launch::RunFolder& folder,
                           const ScheduledOptions& options, Scheduler& scheduler,
                           launch::RunListener& listener);

}  // namespace peakbench::cluster
