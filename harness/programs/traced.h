// A program that is traced: what it is given to record itself, and what became of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/host/installation.h"
#include "host/compiled_library.h"
#include "host/process.h"
#include "host/torch_in_use.h"
#include "programs/journal.h"
#include "programs/journal_files.h"
#include "programs/kept_steps.h"
#include "programs/run_folder.h"

namespace peakbench::programs {

// The library that records, for a program's PyTorch, and how it comes into the program.
struct Tracer {
  pytorch::LibraryInUse library;
  std::filesystem::path python;  // the folder that goes before PYTHONPATH
};
// Where an installation has it: see tracer_places().
struct TracerPlaces {
  std::filesystem::path folder;  // has `tracer`; bundled workers are two folders above
  std::string built_for;         // the version of this build's PyTorch
};
TracerPlaces tracer_places(const emulator::Installation& installation);
// May compile it: see host/compiled_library.h. Throws ConfigError with the reason if there is none.
Tracer tracer_for(const std::optional<pytorch::TorchInUse>& torch, const TracerPlaces& places,
                  const std::function<bool()>& cancelled);
// Nullopt where it would have to be compiled first, or is not there.
std::optional<Tracer> tracer_at_hand(const std::optional<pytorch::TorchInUse>& torch,
                                     const TracerPlaces& places);

struct TracingRequest {
  std::filesystem::path journals;  // a folder that is there
  bool cpu = false;                // the CPU's allocator is traced too
  bool times = false;
  bool quiet = false;           // prints nothing inside of the program, not even errors
  std::int64_t most_bytes = 0;  // of a process's journal, then it is traced no more; 0: as many as
                                // can be read in the machine's memory, 16 GiB at the most
};
process::Environment tracing_environment(const Tracer& tracer, const TracingRequest& request);

// The script or its equivalent: `python3 -m train` is train.
std::string name_of(const std::vector<std::string>& command);

// Reduces the traces to these steps (kept_steps.h), if they exist. Prints to stderr what is left,
// and the peak of the complete program: figures cover only these steps. Returns whether any trace
// was reduced.
bool keep_steps_of(std::vector<Journal>& journals, const StepRange& range);

struct HowItEnded {
  int exit_code = 0;    // 128 + the signal that ended it
  int interrupted = 0;  // the signal that came for it through us; 0: none
};
// All processes, and what the case says: out of memory where the trace of one ends so; interrupted
// where a signal came for the program. Nothing recorded: no processes, and a reason.
ProgramRun run_of(Recorded recorded, const std::vector<std::string>& command,
                  const std::string& device, const HowItEnded& how);

// The process with the highest peak in its own space; nullptr: no process.
const ProgramProcess* fullest(const ProgramRun& run);

// Why the figures of a run are worth less than they seem.
struct Doubt {
  std::string sentence;
  records::VerdictKind kind = records::VerdictKind::lower_bound;  // what they are at the best
};
// Recordings that are incomplete, lost or inconsistent, and processes without a recording that used
// the device. An emulated card knows its users, so lost recordings of other processes do not
// matter.
std::vector<Doubt> doubts_of(const Recorded& recorded, std::vector<Untraced> users,
                             bool knows_all_users);
// They are in the run's settings ("untraced"); the verdict, where it has one, is no better than
// they are, and says why.
void add_doubts(ProgramRun& run, const std::vector<Doubt>& doubts);

// Whether the program ended with the failure that this process's trace ends with.
bool ended_of_it(const ProgramRun& run, const ProgramProcess& process);

}  // namespace peakbench::programs
