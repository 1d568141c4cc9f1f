// `peakbench emulate`: runs any program on an emulated card and says what its processes took of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/emulated_program.h"
#include "host/emulation_text.h"
#include "host/values_environment.h"
#include "process/environment.h"

namespace peakbench::emulator {

struct EmulateRequest {
  std::string card = "h100-80gb";
  std::vector<std::string> command;  // program and arguments
  std::string json_path;             // where the figures go besides; empty: nowhere
  ValuesRequest values;
  Look look;           // of stderr
  bool quiet = false;  // nothing of ours on it: the program's own is all that is there
  // What the program is to have in its environment besides, for the PyTorch that it uses; asked
  // once, before it starts.
  std::function<process::Environment(const std::optional<pytorch::TorchInUse>&)> more_environment;
  // Called when it has ended, after all that is said of it.
  std::function<void(const EmulatedProgram&)> afterwards;
};

// Runs the program with our own input and outputs, passes SIGTERM and SIGHUP on to it, waits for
// its end and says on stderr whether it fits, and what it took. The program's exit code; 128 + the
// signal that ended it. Throws ConfigError where there is nothing to be run: no such card, no such
// program, a program that cannot be emulated (with the reason).
int run_emulated(const EmulateRequest& request);

}  // namespace peakbench::emulator
