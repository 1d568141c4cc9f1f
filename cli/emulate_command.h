#pragma once

#include <string>

#include "emulator/host/run_emulated.h"
#include "reports/analysis/peak_text.h"

namespace peakbench::cli {

// What `emulate` and `trace` say of the peak, a labelled line each: when it was, its categories,
// its lines of code, and one thing to try.
std::string peak_lines(const analysis::PeakBrief& brief, const emulator::Look& look);

}  // namespace peakbench::cli
