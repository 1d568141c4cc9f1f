// What a verdict says of programs whose path depends on how much memory the card has left: those
// that asked, and those that were refused some and went on. The CUDA context takes a part of it
// that is in no figure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ledger.h"

namespace peakbench::emulator {

// Of a place where the program asked how much is free. `context_bytes`: how much of the card is set
// aside for the CUDA context.
std::string free_memory_text(const LedgerPlace& row, std::uint64_t context_bytes);

// A sentence for each device on which allocations were refused in a program that ended well all the
// same.
std::vector<std::string> survived_refusals(const Ledger& ledger);

}  // namespace peakbench::emulator
