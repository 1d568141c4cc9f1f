#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/scheduler.h"
#include "cluster/submission_files.h"
#include "launch/case_states.h"
#include "planning/plan.h"
#include "records/run.h"

namespace peakbench::cluster {

// The batch script of a submission, and what is asked of Slurm in it. Pure.

// Slurm options of each task. Texts are Slurm's own; empty: not set.
struct SlurmOptions {
  std::string partition, account, time, gres, gpus_per_node, qos, constraint, memory;
  std::int64_t cpus_per_task = 1;
  std::int64_t at_once = 0;  // maximum number of tasks at a time; 0: no limit
  std::string prefix;        // words before the program: a container's
};

// A text among them: an option of `peakbench run` and of sbatch, and what it is for.
struct SlurmText {
  const char* option;
  std::string SlurmOptions::*value;
  const char* words;
};
inline constexpr std::array kSlurmTexts{
    SlurmText{"--partition", &SlurmOptions::partition, "Partition, for sbatch"},
    SlurmText{"--account", &SlurmOptions::account, "Account, for sbatch"},
    SlurmText{"--time", &SlurmOptions::time,
              "Time limit of a task: minutes, hours:minutes:seconds, days-hours, ..."},
    SlurmText{"--gres", &SlurmOptions::gres, "Generic resources of a task: gpu:1, gpu:a100:1, ..."},
    SlurmText{"--gpus-per-node", &SlurmOptions::gpus_per_node, "GPUs per node, for sbatch"},
    SlurmText{"--qos", &SlurmOptions::qos, "Quality of service, for sbatch"},
    SlurmText{"--constraint", &SlurmOptions::constraint, "Required node features, for sbatch"},
    SlurmText{"--mem", &SlurmOptions::memory, "Memory of a task: 16G, ..."}};

// Seconds of a time as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds,
// days-[hours[:minutes[:seconds]]]. 0: no limit, which Slurm has for 0, -1, UNLIMITED and INFINITE,
// however they are capitalised. Nullopt: none of these.
std::optional<std::int64_t> walltime_seconds(const std::string& text);

// Throws ConfigError: an invalid time, or a text that would break its line of the script.
void check_options(const SlurmOptions& options);

struct ScriptPlace {
  std::string program;             // peakbench, absolute
  std::string submission;          // RUN/queue/N, absolute
  std::string logs;                // folder
  std::vector<std::size_t> cases;  // to be run, a number a task
  std::string torch = {};          // whose worker is used; empty: the one next to the program
};

// The batch script: an array with one `peakbench work` a task, and how many cases each has as a
// comment.
std::string script_text(const SlurmOptions& options, const ScriptPlace& place);

// How the cases of a run are dealt out to tasks. Pure.

// Of an array: Slurm's own default limit is 1001.
inline constexpr std::size_t kMostTasks = 1000;

struct Dealing {
  // At most, of those that are not timed. Such a case takes a second or less, and a scheduler about
  // as long between two tasks.
  std::size_t cases_a_task = 32;
  std::size_t most_tasks = kMostTasks;
};

// Divides cases among tasks: a list of plan indices for each task, in the order of measuring. Cases
// of a group are timed in turn and stay together on one machine, with ended cases of the group,
// which contain its reference and its rounds. Every other case has its own task. Tasks are joined
// if there are more than `most_tasks`.
std::vector<launch::Cases> deal(const planning::Plan& plan, const launch::CaseStates& states,
                                const std::set<std::size_t>& to_run, const Dealing& dealing);

// A submission: a job of a scheduler's for the tasks that cases were dealt out to, and what is seen
// of each task. Its files are in submission_files.h.

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

// "1 task", "2 tasks".
std::string count_text(std::size_t count, const std::string& what);

// "task 3 of job 17".
std::string name_of(const Submission& submission, const Task& task);
// "FAILED on n1": as the scheduler says.
std::string end_text(const Task& task);

bool is_over(const Submission& submission);

// Its tasks with their cases, as an earlier call wrote them down; no job yet. Cases that the plan
// does not have are left out.
Submission read_submission(const SubmissionFiles& files,
                           const std::map<std::string, std::size_t>& index_of);

// Writes which cases belong to which task, next to the orders.
void write_tasks(const Submission& submission, const planning::Plan& plan);

// The job of an earlier call's submission. Empty if it was not submitted, or if the job is gone.
// Throws ConfigError if the scheduler does not reply.
std::string job_of(const SubmissionFiles& files, Scheduler& scheduler);

// Of an earlier call's job, which one has to know of before anything is done. Throws as job_of().
std::map<std::size_t, TaskSeen> states_of(const std::string& job, std::size_t tasks,
                                          Scheduler& scheduler);

// Jobs of a run that the scheduler still has, as words; empty: none. Throws as job_of().
std::string live_jobs(const std::string& run_folder, Scheduler& scheduler);

// Making a submission: cases dealt out, written down, and handed to the scheduler.

struct SubmitOptions {
  SlurmOptions slurm;
  Dealing dealing;
  std::string program;  // peakbench, as the machines find it
};

// A submission of the run in this folder. Throws HostError where it cannot be written, ConfigError
// where the scheduler refuses it.
Submission submit(const planning::Plan& plan, const launch::CaseStates& states,
                  const std::set<std::size_t>& to_run, const std::string& run_folder,
                  const SubmitOptions& options, Scheduler& scheduler);

// The script that would be submitted first; empty: there is nothing to run. `run`: what the folder
// holds, to be continued; null: nothing.
std::string first_script(const planning::Plan& plan, const std::string& run_folder,
                         const SubmitOptions& options, const records::Run* run);

}  // namespace peakbench::cluster
