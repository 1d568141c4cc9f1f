// `peakbench emulate`: runs any program on an emulated card and says what its processes took of it.
#pragma once

#include <string>
#include <vector>

#include "core/ledger.h"
#include "host/card.h"
#include "host/values_environment.h"
#include "verdict/judge.h"

namespace peakbench::emulator {

struct EmulateRequest {
  std::string card = "h100-80gb";
  std::vector<std::string> command;  // program and arguments
  std::string json_path;             // where the figures go besides; empty: nowhere
  ValuesRequest values;
};

// Runs the program with our own input and outputs, passes SIGTERM and SIGHUP on to it, waits for
// its end and prints a table on stderr. The program's exit code; 128 + the signal that ended it.
// Throws ConfigError where there is nothing to be run: no such card, no such program, a program
// that cannot be emulated (with the reason).
int run_emulated(const EmulateRequest& request);

// The table and the verdict below it, for a program that ended with this status (as waitpid gives
// it).
// `card_peaks`: of all processes together, by card; see read_card_peaks.
std::string emulation_table(const Card& card, const std::vector<const Ledger*>& ledgers,
                            const std::vector<std::uint64_t>& card_peaks,
                            const std::vector<int>& cuda_majors, const Verdict& verdict,
                            int wait_status);

}  // namespace peakbench::emulator
