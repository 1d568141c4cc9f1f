// A program that is traced: what it is given to record itself, and what became of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "process/environment.h"
#include "program/journal.h"
#include "program/run_folder.h"
#include "pytorch/torch_in_use.h"

namespace peakbench::program {

// The tracer that fits a program's PyTorch.
struct Tracer {
  std::filesystem::path library, python;  // python: the folder that goes before PYTHONPATH
  std::string problem;                    // why there is none; empty where there is
};
// `built_for`: the version of the one in `folder`/tracer; those for others lie beside their
// workers.
Tracer tracer_for(const std::optional<pytorch::TorchInUse>& torch, const std::string& built_for,
                  const std::filesystem::path& folder);

struct TracingRequest {
  std::filesystem::path journals;  // a folder that is there
  bool cpu = false;                // the CPU's allocator is traced too
  bool times = false;
};
process::Environment tracing_environment(const Tracer& tracer, const TracingRequest& request);

// The script, or what stands for it: `python3 -m train` is train.
std::string name_of(const std::vector<std::string>& command);

// The process with the highest peak in its own space, and what its case says: out of memory where
// its trace ends so. Nothing recorded: no processes, and a reason.
ProgramRun run_of(std::vector<Journal> journals, const std::vector<std::string>& command,
                  const std::string& device, int exit_code);

// Of a process that used a card and left no trace.
struct Untraced {
  std::int32_t pid = 0;
  std::int64_t used_bytes = 0;  // at the most, of the card
};

// Why the figures of a run are worth less than they seem.
struct Doubt {
  std::string sentence;
  result::VerdictKind kind = result::VerdictKind::lower_bound;  // what they are at the best
};
// Recordings that are not whole or do not add up, and processes without any.
std::vector<Doubt> doubts_of(const std::vector<Journal>& journals,
                             const std::vector<Untraced>& processes);
// The verdict, where the run has one, is no better than they are, and says why.
void add_doubts(ProgramRun& run, const std::vector<Doubt>& doubts);

// What people want to know first, for a terminal: the peak, its categories, and the lines of the
// program that hold most of it.
std::string summary_text(const ProgramRun& run);

}  // namespace peakbench::program
