// Runs any program with the tracer in it, on an emulated card or on what the machine has: what
// `peakbench trace` and the programs of a suite have in common.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "host/emulation_text.h"
#include "host/values_environment.h"
#include "program/kept_steps.h"
#include "program/traced.h"

namespace peakbench::program {

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

}  // namespace peakbench::program
