// Runs a program again with other plausible values in place of unknown ones, and compares its
// peaks.
#pragma once

#include <chrono>
#include <cstdint>

#include "host/emulated_command.h"
#include "host/emulated_program.h"

namespace peakbench::emulator {

struct SecondGuessRequest {
  const EmulatedCommand& command;
  const EmulatedProgram& first;  // that ended well
  std::int64_t runs = 0;         // further ones
  std::chrono::seconds limit;    // of each; then it is ended
  bool quiet = false;
};

// The program runs without input, and what it prints is not shown. SIGINT, SIGQUIT, SIGTERM and
// SIGHUP end it. Says on stderr what it does.
SecondGuess second_guess(const SecondGuessRequest& request);

}  // namespace peakbench::emulator
