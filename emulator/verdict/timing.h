// What of a program's figures depends on how fast a card is.
#pragma once

#include <string>
#include <vector>

#include "core/card.h"
#include "core/ledger.h"

namespace peakbench::emulator {

// Each is a condition: where the program asked whether work is done, or how long it took.
std::vector<std::string> timing_reads(const Ledger& ledger);

// Blocks of the card that wait for a stream, a condition: empty where there were none.
std::string blocks_in_question(const Ledger& ledger, Streams streams);
// The same of page-locked host memory: a note, no figure of the card depends on it.
std::string pinned_in_question(const Ledger& ledger, Streams streams);

}  // namespace peakbench::emulator
