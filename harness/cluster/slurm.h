#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/scheduler.h"

namespace peakbench::cluster {

// What Slurm's commands print, read. Pure.

// The numbers in a text such as 1-12 or 2:00:05. Nullopt: there is something else between the
// separators.
std::optional<std::vector<std::int64_t>> numbers_in(std::string_view text, char separator);

// Without blanks around it.
std::string trimmed(const std::string& text);

// Numbers below `tasks` of a job's tasks in an id as squeue and sacct write it: 12_3,
// 12_[0-2,7-9:2%4]. None for another id, and for one of another job.
std::vector<std::size_t> tasks_of_id(const std::string& id, const std::string& job,
                                     std::size_t tasks);

// Lines of `squeue --format=%i|%T|%R` and of `sacct --parsable2 --format=JobID,State,NodeList`: of
// the job's tasks below `tasks`. Other lines are left out. Nullopt: they are of other jobs alone,
// or say more than an array of this size can have; nothing is known then.
std::optional<std::map<std::size_t, TaskSeen>> states_from(const std::string& lines,
                                                           const std::string& job,
                                                           std::size_t tasks);

// Of lines of `squeue --format=%F|%T|%o`: the newest job of this script that has not ended. Empty:
// none.
std::string live_job_from(const std::string& lines, const std::string& script_path);

// How often a job was begun again, in what `scontrol show job` prints. Nullopt: it does not say.
std::optional<int> restarts_from(const std::string& out);

// The job's number in what `sbatch --parsable` printed; empty: none.
std::string job_from(const std::string& out);

// Slurm, by its commands: sbatch, squeue, scontrol, sacct where there is accounting, scancel.
// A Ctrl-C (launch/interrupt.h) ends a question that Slurm has not answered: there is no answer.

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
  std::optional<int> restarts(const std::string& job, std::size_t task) override;
  std::string cancel(const std::string& job) override;

 private:
  void add_from_accounting(const std::string& job, std::map<std::size_t, TaskSeen>& states);

  bool has_accounting_ = true;  // until it says otherwise
};

}  // namespace peakbench::cluster
