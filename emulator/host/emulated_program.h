#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/ledger.h"
#include "core/shared_cards.h"
#include "emulator/host/card.h"
#include "emulator/host/environment.h"
#include "emulator/host/installation.h"
#include "emulator/host/program_signals.h"
#include "host/process.h"
#include "host/torch_in_use.h"
#include "verdict/judge.h"

namespace peakbench::emulator {

// A program that is to run on an emulated card, and what it needs for that.

// What is known before the program starts.
struct BeforeProgram {
  const std::optional<pytorch::TorchInUse>& torch;  // that the program uses; unknown: nullopt
  const std::filesystem::path& folder;              // exists until everything is reported
  const std::function<bool()>& cancelled;           // whether the user has had enough meanwhile
};

struct EmulatedCommand {
  std::string card = "h100-80gb";
  std::vector<std::string> command;  // program and arguments
  ValuesRequest values;
  World world;
  // What the program is to have in its environment besides; asked once.
  std::function<process::Environment(const BeforeProgram&)> more_environment;
};

struct PreparedCommand {
  std::optional<pytorch::TorchInUse> torch;
  Installation installation;  // for that PyTorch
  Card card;
  process::Environment environment;
  std::vector<process::Environment> runs;  // of the program: what each has in addition
};

// `folder`: of ledgers (ledgers.h). `limited`: false gives the card more memory than any
// program takes. May compile libraries for the program's PyTorch. Nullopt: cancelled. Throws
// ConfigError: no such card, no such program, one that cannot be emulated (with the reason).
std::optional<PreparedCommand> prepare(const EmulatedCommand& command,
                                       const std::filesystem::path& folder, bool limited,
                                       const std::function<bool()>& cancelled);

// A program that ran on an emulated card, when it has ended: what its text and its JSON are made
// of.

struct EmulatedProgram {
  Card card;
  std::vector<const Ledger*> ledgers;  // of all its processes that asked for a card
  std::vector<SharedPeak> card_peaks;  // by card: read_card_peaks
  std::vector<int> cuda_majors;        // that the card replaces
  std::optional<pytorch::TorchInUse> torch;
  Verdict verdict;
  int wait_status = 0;  // as waitpid gives it
  int interrupted = 0;  // the first signal that came for it through us; 0: none
};

// The emulated program itself, with our own input and outputs.

// Where its standard output goes.
enum class ProgramOutput { kOwn, kToStandardError };

// Runs it once or, if it stands for several ranks, one after the other until one fails. Waits for
// the end; its status, as waitpid gives it. Signals stay passed on. Which of several devices to use
// (CUDA_VISIBLE_DEVICES) is the caller's to say: a value of ours wins there. Throws ConfigError
// where it was not started, with the reason.
int run_program(const std::vector<std::string>& command, const process::Environment& environment,
                const ProgramSignals& signals, ProgramOutput output = ProgramOutput::kOwn,
                const std::vector<process::Environment>& runs = {{}});

// A prepared program without input, whose output goes to a file.

// Runs it as run_program does. Waits for its end; after `limit`, or when `cancelled`, it is ended.
process::ProcessEnd run_unattended(const std::vector<std::string>& command,
                                   const PreparedCommand& prepared,
                                   const std::filesystem::path& log, std::chrono::seconds limit,
                                   const std::function<bool()>& cancelled);

}  // namespace peakbench::emulator
