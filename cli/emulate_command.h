// What `emulate` and `trace` say of the peak: what fills it, by category and by line of the
// program's code.
#pragma once

#include <string>

#include "emulator/host/run_emulated.h"
#include "reports/analysis/peak_text.h"

namespace peakbench::cli {

// A labelled line each: when it was, its categories, its lines of code, and one thing to try.
std::string peak_lines(const analysis::PeakBrief& brief, const emulator::Look& look);

// Traces the program if an installed tracer fits its PyTorch, and reports the peak when it has
// ended. The report goes to stderr, as the request's view asks, and to the JSON as `peak` (null if
// unknown). If a tracer would have to be compiled first, prints how to get it. The figures are only
// reported if the trace's peak equals PyTorch's own.
//
// `misplaced`: if not empty, the reason to report if the program fails before it uses the card. It
// was given an option of Peakbench.
void tell_peak(emulator::EmulateRequest& request, const std::string& misplaced);

}  // namespace peakbench::cli
