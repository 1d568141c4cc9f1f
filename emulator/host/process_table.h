// What each process took of its cards, a row a device of a process.
#pragma once

#include <string>
#include <vector>

#include "host/card_use.h"

namespace peakbench::emulator {

// Of at most `width` columns. Of many processes, those that took the same share a row, and only the
// largest rows are shown. Empty without uses.
std::string process_table(const std::vector<CardUse>& uses, int width);

}  // namespace peakbench::emulator
