// A submission: a job of a scheduler's for the tasks that cases were dealt out to, and what is seen
// of each task. Its files are in submission_files.h.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/scheduler.h"
#include "executor/submission_files.h"
#include "launch/pending_groups.h"
#include "plan/plan.h"

namespace peakbench::executor {

struct Task {
  std::size_t number = 0;
  launch::Cases cases;
  TaskSeen seen;
  bool over = false;
  int begun = 0;           // the last attempt that is known to have begun
  int attempt = -1;        // the last whose end was read
  std::string stopped_by;  // how that ended; empty: not by a signal
  std::string stamp;       // of the last run.json as it was read last
  // No longer at work, and not a word of its end.
  std::optional<std::chrono::steady_clock::time_point> silent_since;
};

struct Submission {
  SubmissionFiles files;
  std::string job;
  std::vector<Task> tasks;
};

// Whether the last attempt that is known of says that a signal ended it.
bool is_stopped(const Task& task);

// "task 3 of job 17".
std::string name_of(const Submission& submission, const Task& task);
// "FAILED on n1": as the scheduler says.
std::string end_text(const Task& task);

bool is_over(const Submission& submission);

// Its tasks with their cases, as an earlier call wrote them down; no job yet. Cases that the plan
// does not have are left out.
Submission read_submission(const SubmissionFiles& files,
                           const std::map<std::string, std::size_t>& index_of);

// Writes down which cases are whose, beside the orders.
void write_tasks(const Submission& submission, const plan::Plan& plan);

// The job of a submission that an earlier call made; empty: it was not submitted, or has no job any
// more that anybody knows of. Throws ConfigError where the scheduler does not answer.
std::string job_of(const SubmissionFiles& files, Scheduler& scheduler);

// Of an earlier call's job, which one has to know of before anything is done. Throws as job_of().
std::map<std::size_t, TaskSeen> states_of(const std::string& job, std::size_t tasks,
                                          Scheduler& scheduler);

// Jobs of a run that the scheduler still has, as words; empty: none. Throws as job_of().
std::string live_jobs(const std::string& run_folder, Scheduler& scheduler);

}  // namespace peakbench::executor
