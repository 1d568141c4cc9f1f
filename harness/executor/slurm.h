// Slurm, by its commands: sbatch, squeue, sacct where there is accounting, scancel.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/scheduler.h"

namespace peakbench::executor {

// What is asked of Slurm for each task. Texts are Slurm's own; empty: not said.
struct SlurmOptions {
  std::string partition, account, time, gres, gpus_per_node, qos, constraint, memory;
  std::int64_t cpus_per_task = 1;
  std::int64_t at_once = 0;  // tasks that run at a time; 0: as many as there is room for
  std::string prefix;        // words before the program: a container's
};

// Seconds of a time as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds,
// days-hours[:minutes[:seconds]]. Nullopt: none of these. 0 means no limit to Slurm.
std::optional<std::int64_t> walltime_seconds(const std::string& text);

// Throws ConfigError: a time that is none, or a text that would break its line of the script.
void check_options(const SlurmOptions& options);

struct ScriptPlace {
  std::string program;  // peakbench, absolute
  std::string queue;    // RUN/queue/N, absolute
  std::string logs;     // folder
  std::size_t tasks = 0;
};

// The batch script: an array with one `peakbench work` a task. Pure.
std::string script_text(const SlurmOptions& options, const ScriptPlace& place);

// Numbers of an array's tasks in an id as squeue and sacct write it: 12_3, 12_[0-2,7-9:2%4]. None
// for another id. Pure.
std::vector<std::size_t> tasks_of_id(const std::string& id);

// Lines of `squeue --format=%i|%T|%R` and of `sacct --parsable2 --format=JobID,State,NodeList`.
// Lines that say nothing of a task of an array are left out. Pure.
std::map<std::size_t, TaskSeen> states_from(const std::string& lines);

// The state that a word of Slurm's means: RUNNING, "CANCELLED by 1000". A word that is not known
// means kRunning: nothing is concluded from it. Pure.
TaskState state_from(const std::string& word);

// A reason to wait, as squeue gives it, that no waiting ends: a partition, an account or a limit
// that refuses the job. Pure.
bool never_begins(const std::string& reason);

// The job's number in what `sbatch --parsable` printed; empty: none. Pure.
std::string job_from(const std::string& out);

class Slurm : public Scheduler {
 public:
  // Throws ConfigError where there is no sbatch.
  Slurm();
  // Whether its programs are on PATH.
  static bool is_here();
  std::string submit(const std::string& script_path) override;
  std::optional<std::string> job_of(const std::string& script_path) override;
  std::optional<std::map<std::size_t, TaskSeen>> states(const std::string& job,
                                                        std::size_t tasks) override;
  std::string cancel(const std::string& job) override;

 private:
  void add_from_accounting(const std::string& job, std::map<std::size_t, TaskSeen>& states);

  bool has_accounting_ = true;  // until it says otherwise
};

}  // namespace peakbench::executor
