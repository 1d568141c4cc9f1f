// A program that is traced: what it is given to record itself, and what became of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "process/environment.h"
#include "program/journal.h"
#include "program/run_folder.h"
#include "pytorch/library_in_use.h"
#include "pytorch/torch_in_use.h"

namespace peakbench::program {

// The library that records, for a program's PyTorch, and how it comes into the program.
struct Tracer {
  pytorch::LibraryInUse library;
  std::filesystem::path python;  // the folder that goes before PYTHONPATH
};
// Where an installation has it.
struct TracerPlaces {
  std::filesystem::path folder;  // holds `tracer`; workers that are carried lie two above
  std::string built_for;         // the version of this build's PyTorch
};
// May compile it: see pytorch/library_in_use.h. Throws ConfigError where there is none, with the
// reason.
Tracer tracer_for(const std::optional<pytorch::TorchInUse>& torch, const TracerPlaces& places,
                  const std::function<bool()>& cancelled);
// Nullopt where it would have to be compiled first, or is not there.
std::optional<Tracer> tracer_at_hand(const std::optional<pytorch::TorchInUse>& torch,
                                     const TracerPlaces& places);

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

// What people want to know first, for a terminal: the peak, its categories, and the lines of the
// program that hold most of it.
std::string summary_text(const ProgramRun& run);

}  // namespace peakbench::program
