// The batch script of a submission, and what is asked of Slurm in it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace peakbench::executor {

// What is asked of Slurm for each task. Texts are Slurm's own; empty: not said.
struct SlurmOptions {
  std::string partition, account, time, gres, gpus_per_node, qos, constraint, memory;
  std::int64_t cpus_per_task = 1;
  std::int64_t at_once = 0;  // tasks that run at a time; 0: as many as there is room for
  std::string prefix;        // words before the program: a container's
};

// Seconds of a time as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds,
// days-[hours[:minutes[:seconds]]]. 0: no limit, which Slurm has for 0, -1, UNLIMITED and INFINITE,
// however they are capitalised. Nullopt: none of these.
std::optional<std::int64_t> walltime_seconds(const std::string& text);

// Throws ConfigError: a time that is none, or a text that would break its line of the script.
void check_options(const SlurmOptions& options);

struct ScriptPlace {
  std::string program;             // peakbench, absolute
  std::string submission;          // RUN/queue/N, absolute
  std::string logs;                // folder
  std::vector<std::size_t> cases;  // to be run, a number a task
  std::string torch = {};          // whose worker is taken; empty: the one beside the program
};

// The batch script: an array with one `peakbench work` a task, and how many cases each has as a
// comment.
std::string script_text(const SlurmOptions& options, const ScriptPlace& place);

}  // namespace peakbench::executor
