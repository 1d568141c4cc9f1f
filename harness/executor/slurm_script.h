// The batch script of a submission, and what is asked of Slurm in it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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
  std::string program;     // peakbench, absolute
  std::string submission;  // RUN/queue/N, absolute
  std::string logs;        // folder
  std::size_t tasks = 0;
};

// The batch script: an array with one `peakbench work` a task.
std::string script_text(const SlurmOptions& options, const ScriptPlace& place);

}  // namespace peakbench::executor
