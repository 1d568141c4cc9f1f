#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "emulator/host/emulated_program.h"
#include "emulator/host/emulation_text.h"
#include "emulator/host/environment.h"
#include "programs/kept_steps.h"
#include "programs/run_folder.h"
#include "programs/traced.h"

namespace peakbench::programs {

// Runs any program with the tracer in it, on an emulated card or on what the machine has: what
// `peakbench trace` and the programs of a suite have in common.

struct TraceRequest {
  std::string card;    // emulated; empty: what the machine has
  std::string device;  // of the case; empty: the card's, or the one that most was traced of
  std::vector<std::string> command;
  std::filesystem::path journals;  // an empty folder for what the processes record
  emulator::ValuesRequest values;
  std::int64_t second_guesses = 0;  // on an emulated card: of emulator::EmulateRequest
  emulator::Look look;
  std::optional<StepRange> steps;  // that stay in the traces; nullopt: all
  // Standard error is the program's own: what is wrong with the recordings is in the verdict alone.
  bool quiet = false;
};

struct TracedProgram {
  int exit_code = 0;              // 128 + the signal that ended it
  std::optional<ProgramRun> run;  // nullopt: a signal came before the program was started
  // Why its figures say less than the card knows of: an emulated card's verdict has them, too.
  std::vector<Doubt> doubts;
  bool is_host_failure = false;  // the host refused memory that the emulated card had
};

// With our own input and outputs; waits for its end. Throws ConfigError where there is nothing to
// be run or traced: no such program or card, a PyTorch that there is no tracer for.
TracedProgram trace_program(const TraceRequest& request);

// Finds the memory that a program would have needed after it ran out of memory on an emulated card.
// Runs it again, on a card of the same kind without a limit.

struct NeededRequest {
  std::string card;
  std::vector<std::string> command;
  emulator::ValuesRequest values;
  std::filesystem::path folder;  // that is there: for what it records and prints meanwhile
  std::chrono::seconds limit;    // then it is ended
};

// Does nothing unless the run ended out of memory on an emulated card. If the second run succeeds,
// sets `needed_bytes` and `needed_allocated_bytes` of the process with the highest peak. Otherwise
// sets `needed_note`, the end of the run's reason: how far the second run came, and how much it had
// needed until then. SIGINT, SIGQUIT, SIGTERM and SIGHUP end it. Prints to stderr what it does.
void find_needed(ProgramRun& run, const NeededRequest& request);

// For a terminal: what was found, in a sentence with its newline; empty where nothing was looked
// for.
std::string needed_text(const ProgramRun& run);

}  // namespace peakbench::programs
