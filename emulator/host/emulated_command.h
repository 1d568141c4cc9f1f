// A program that is to run on an emulated card, and what it needs for that.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/card.h"
#include "host/installation.h"
#include "host/values_environment.h"
#include "process/environment.h"
#include "pytorch/torch_in_use.h"

namespace peakbench::emulator {

// What is known before the program starts.
struct BeforeProgram {
  const std::optional<pytorch::TorchInUse>& torch;  // that the program uses; not known: nullopt
  const std::filesystem::path& folder;              // there until all is said of the program
  const std::function<bool()>& cancelled;           // whether the user has had enough meanwhile
};

struct EmulatedCommand {
  std::string card = "h100-80gb";
  std::vector<std::string> command;  // program and arguments
  ValuesRequest values;
  // What the program is to have in its environment besides; asked once.
  std::function<process::Environment(const BeforeProgram&)> more_environment;
};

struct PreparedCommand {
  std::optional<pytorch::TorchInUse> torch;
  Installation installation;  // for that PyTorch
  Card card;
  process::Environment environment;
};

// `folder`: of ledgers (ledger_folder.h). `limited`: false gives the card more memory than any
// program takes. May compile libraries for the program's PyTorch. Nullopt: cancelled. Throws
// ConfigError: no such card, no such program, one that cannot be emulated (with the reason).
std::optional<PreparedCommand> prepare(const EmulatedCommand& command,
                                       const std::filesystem::path& folder, bool limited,
                                       const std::function<bool()>& cancelled);

}  // namespace peakbench::emulator
