// What of a program's figures depends on how fast a card is.
#pragma once

#include <string>
#include <vector>

#include "core/ledger.h"

namespace peakbench::emulator {

// Each is a condition: where the program asked whether work is done, or how long it took.
std::vector<std::string> timing_reads(const Ledger& ledger);

// Blocks of the card that wait for a stream: empty where there were none. Where streams are late it
// is why the figures are an upper bound, otherwise a condition.
std::string blocks_in_question(const Ledger& ledger, bool late_streams);
// The same of page-locked host memory: a note, no figure of the card depends on it.
std::string pinned_in_question(const Ledger& ledger, bool late_streams);

}  // namespace peakbench::emulator
