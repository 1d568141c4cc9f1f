// How a task's attempt ended, for people.
#pragma once

#include <string>

#include "executor/outcomes.h"
#include "executor/slurm_script.h"
#include "executor/submission.h"
#include "launch/case_states.h"
#include "launch/pending_groups.h"
#include "plan/plan.h"

namespace peakbench::executor {

// The reason of a case that is over with its task.
std::string reason_of(EndedBy by, const Submission& submission, const Task& task,
                      const SlurmOptions& options);

// "task 3 of job 17 ended FAILED on n1: WHAT".
std::string warning_of(const Submission& submission, const Task& task, const std::string& what);

// Of a task that left nothing in the run's folder, as the others then will not: why the run is
// given up.
std::string unheard_text(const Submission& submission, const Task& task,
                         const std::string& program);

// Where no case of the run ended within the job's time, which is said once and not only in every
// row; else empty.
std::string short_time_text(const plan::Plan& plan, const launch::CaseStates& states,
                            const launch::Cases& order, const SlurmOptions& options);

// " (--time 4:00)"; empty where none was given.
std::string time_option(const SlurmOptions& options);

}  // namespace peakbench::executor
