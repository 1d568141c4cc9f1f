// Slurm, by its commands: sbatch, squeue, scontrol, sacct where there is accounting, scancel.
// A Ctrl-C (launch/interrupt.h) ends a question that Slurm has not answered: there is no answer.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "executor/scheduler.h"

namespace peakbench::executor {

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

}  // namespace peakbench::executor
