// Reads of what is not known, as a verdict names them.
#pragma once

#include <string>
#include <vector>

#include "core/ledger.h"

namespace peakbench::emulator {

// By when they were entered first.
std::vector<const LedgerReadBack*> unknown_reads(const Ledger& ledger);

// "aten::item at train.py:12 read bool values that are not known (2 times)"
std::string text_of(const LedgerReadBack& row);

}  // namespace peakbench::emulator
