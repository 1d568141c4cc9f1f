// What `emulate` and `trace` say of the peak: what fills it, by category and by line of the
// program's code.
#pragma once

#include <string>

#include "emulator/host/run_emulated.h"
#include "reports/analysis/peak_text.h"

namespace peakbench::cli {

// A labelled line each: when it was, its categories, its lines of code, and one thing to try.
std::string peak_lines(const analysis::PeakBrief& brief, const emulator::Look& look);

// Has the program traced where a tracer for its PyTorch is at hand, and the peak told when it has
// ended: on stderr as the request's view wants it, and in the JSON as `peak` (null where nothing is
// known of it). Where one would
// have to be compiled first, how to get it is said. The figures are told only where the trace's
// peak is PyTorch's own.
//
// `misplaced` is the reason given where the program fails before it uses the card, if it is not
// empty: it was given an option of Peakbench.
void tell_peak(emulator::EmulateRequest& request, const std::string& misplaced);

}  // namespace peakbench::cli
