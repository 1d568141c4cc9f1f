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
#include "trace/lifetimes.h"
#include "trace/maxima.h"
#include "trace/trace.h"

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

// Says on stderr what of the recordings is missing or does not add up.
void complain(const std::vector<Journal>& journals);

// The process with the highest peak in its own space, and what its case says: out of memory where
// its trace ends so. Nothing recorded: no processes, and a reason.
ProgramRun run_of(std::vector<Journal> journals, const std::vector<std::string>& command,
                  const std::string& device, int exit_code);

// Of a process that used a card and left no trace.
struct Untraced {
  std::int32_t pid = 0;
  std::int64_t used_bytes = 0;  // at the most, of the card
};

// Says of the run what it lacks: its figures are a lower bound. Returns the sentences.
std::vector<std::string> add_untraced(ProgramRun& run, const std::vector<Untraced>& processes);

// The process with the highest peak. `trace` is null where there is no process.
struct Fullest {
  const trace::Trace* trace = nullptr;  // of the run
  std::vector<trace::Lifetime> lifetimes;
  trace::Peak peak;
};
Fullest fullest_of(const ProgramRun& run);

// For a terminal: the peak, its categories, and the lines of the program that hold most of it.
std::string summary_text(const ProgramRun& run, const Fullest& fullest_process);

}  // namespace peakbench::program
