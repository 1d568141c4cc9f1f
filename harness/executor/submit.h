// Making a submission: cases dealt out, written down, and handed to the scheduler.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "executor/scheduler.h"
#include "executor/slurm_script.h"
#include "executor/submission.h"
#include "executor/tasks.h"
#include "launch/case_states.h"
#include "plan/plan.h"
#include "result/run.h"

namespace peakbench::executor {

struct SubmitOptions {
  SlurmOptions slurm;
  Dealing dealing;
  std::string program;  // peakbench, as the machines find it
};

// A submission of the run in this folder. Throws HostError where it cannot be written, ConfigError
// where the scheduler refuses it.
Submission submit(const plan::Plan& plan, const launch::CaseStates& states,
                  const std::set<std::size_t>& to_run, const std::string& run_folder,
                  const SubmitOptions& options, Scheduler& scheduler);

// The script that would be submitted first; empty: there is nothing to run. `run`: what the folder
// holds, to be continued; null: nothing.
std::string first_script(const plan::Plan& plan, const std::string& run_folder,
                         const SubmitOptions& options, const result::Run* run);

}  // namespace peakbench::executor
