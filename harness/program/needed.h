// What a program would have needed that ran out of the memory of an emulated card: it is run once
// more, on a card of the same kind without a limit.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "host/emulated_command.h"
#include "program/run_folder.h"

namespace peakbench::program {

struct NeededRequest {
  std::string card;
  std::vector<std::string> command;
  emulator::ValuesRequest values;
  std::filesystem::path folder;  // that is there: for what it records and prints meanwhile
  std::chrono::seconds limit;    // then it is ended
};

// Only of a run that ended out of memory on an emulated card: of others nothing is done. Fills
// `needed_bytes` and `needed_allocated_bytes` of the process with the highest peak where the second
// run came to its end; else `needed_note`, which the run's reason ends with, says how far it came,
// and what it had needed until then. SIGINT, SIGQUIT, SIGTERM and SIGHUP end it. Says on stderr
// what it does.
void find_needed(ProgramRun& run, const NeededRequest& request);

// For a terminal: what was found, in a sentence with its newline; empty where nothing was looked
// for.
std::string needed_text(const ProgramRun& run);

}  // namespace peakbench::program
