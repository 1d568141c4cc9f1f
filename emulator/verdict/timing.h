// What of a program's figures depends on how fast a card is.
#pragma once

#include <string>

#include "core/card.h"
#include "core/ledger.h"

namespace peakbench::emulator {

// Conditions: where the program asked whether work is done, and how long it took.
std::string done_text(const LedgerPlace& row);
std::string elapsed_text(const LedgerPlace& row);
std::string profile_text(const LedgerPlace& row);

// Blocks of the card that wait for a stream, a condition: empty where there were none.
std::string blocks_in_question(const Ledger& ledger, Streams streams);
// The same of page-locked host memory: a note, no figure of the card depends on it.
std::string pinned_in_question(const Ledger& ledger, Streams streams);

}  // namespace peakbench::emulator
