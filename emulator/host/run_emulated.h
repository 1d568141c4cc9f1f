#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "emulator/host/emulated_program.h"
#include "emulator/host/emulation_text.h"
#include "host/process.h"

namespace peakbench::emulator {

// `peakbench emulate`: runs any program on an emulated card and says what its processes took of it.

struct EmulateRequest : EmulatedCommand {
  std::string name;       // of the program, for comparisons; empty: what its command says
  std::string json_path;  // additional file for the figures; empty: none
  // Where they go in place of a file. Standard output is then theirs: the program's goes to stderr.
  std::ostream* json_out = nullptr;
  Look look;                        // styling of stderr, and how much is printed there
  std::int64_t second_guesses = 0;  // further runs with other plausible values
  // Called after the program has ended and all has been reported. It may add to the figures in
  // JSON. `folder` is that of BeforeProgram.
  std::function<void(const EmulatedProgram&, const std::filesystem::path& folder,
                     nlohmann::json& figures)>
      afterwards;
};

// Runs the program with our own input and outputs, passes signals on to it, waits for
// its end and says on stderr whether it fits, and what it took. The program's exit code; 128 + the
// signal that ended it. Throws ConfigError where there is nothing to be run: no such card, no such
// program, a program that cannot be emulated (with the reason).
int run_emulated(const EmulateRequest& request);

struct AgainRequest : EmulatedCommand {
  std::filesystem::path log;   // of all that it prints
  std::chrono::seconds limit;  // then it is ended
};

// Runs the program once more, on a card of the same kind with more memory than any program takes,
// without input. SIGINT, SIGQUIT, SIGTERM and SIGHUP end it. Nullopt: one of them came before it
// was started. Throws ConfigError as run_emulated does.
std::optional<process::ProcessEnd> run_without_limit(const AgainRequest& request);

}  // namespace peakbench::emulator
