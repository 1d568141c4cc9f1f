// The interface to a scheduler: Slurm, or a fake one in tests. Use from one thread.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace peakbench::cluster {

enum class TaskState {
  kWaiting,    // or begun again by the scheduler: what came before is no end
  kNever,      // waits for what does not come
  kRunning,    // or ending
  kDone,       // its program exited with 0
  kFailed,     // with something else
  kTimeLimit,  // the job's
  kOutOfMemory,
  kCancelled,  // by a user
  kLost,       // its machine was taken from it and it was not begun again
};

struct TaskSeen {
  TaskState state = TaskState::kWaiting;
  std::string word;   // the scheduler's own
  std::string where;  // its machine, or why it waits
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Submits a script as an array of tasks, and returns the job. Throws ConfigError with the
  // scheduler's message.
  virtual std::string submit(const std::string& script_path) = 0;
  // The job that it still has of a script, should a call have died before it wrote the number down;
  // empty: none. Nullopt: it did not answer.
  virtual std::optional<std::string> job_of(const std::string& script_path) = 0;
  // States of the job's `tasks` tasks, as far as the scheduler knows them. Nullopt: no reply.
  virtual std::optional<std::map<std::size_t, TaskSeen>> states(const std::string& job,
                                                                std::size_t tasks) = 0;
  // How often it has begun a task again, after its first attempt. Nullopt: it does not say.
  virtual std::optional<int> restarts(const std::string& job, std::size_t task) = 0;
  // Why that failed; empty: it is done.
  virtual std::string cancel(const std::string& job) = 0;
};

}  // namespace peakbench::cluster
