// What fills a program's memory at its peak, for a terminal and as JSON: in full, and in short.
// Pure; names from the trace are not escaped.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trace/lifetimes.h"
#include "trace/trace.h"

namespace peakbench::analysis {

// The text: sentences of why(), categories, the lines that hold most. Then, if memory ran out at
// the end, what filled the card at that moment. Last, the failed allocations after which the
// program continued. `ended_of_it`: the program ended with the failure that its trace ends with.
std::string peak_text(const trace::Trace& trace, bool ended_of_it);

// Selects one of several processes.
struct Teller {
  std::string name;           // "rank 3"; empty where it is the only one
  std::size_t processes = 1;  // that were recorded
};

// The categories in one line, and the three lines of code that hold most; where one of them holds
// over half, the three that it calls in libraries.
std::string peak_in_short(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                          const Teller& teller);

// A program's peak in four short lines: when it was, its categories, its lines, and one thing to
// try.
struct PeakBrief {
  // "0.115 GiB allocated by tensors, in backward of step 2"; where the program ended out of memory,
  // what was asked for then.
  std::string when;
  // "activation 3.100 GiB, parameter 1.200 GiB, ...": then.
  std::string categories;
  // "train.py:12 45% (activation), train.py:9 30% (gradient), ...": of the peak or, where memory
  // ran out, of what was allocated then. Where one line of the program holds more than half, what
  // it calls is named, too. Empty where no call stacks were recorded.
  std::string fills;
  // A probable mistake (why.h), else the line of PyTorch against the largest part
  // (strategies_against.h). Empty if neither is known.
  std::string advice;
};

// Pure; names from the trace are not escaped.
PeakBrief peak_brief(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes);

// JSON with the names of `memory` in run.json, and some more:
//
// - peak_allocated_bytes, peak_phase, peak_step (from 0; 0 before the first one), at_peak;
// - peak_when: the same in words;
// - lines: the 32 that hold most;
// - called_lines (line_names.h).
nlohmann::ordered_json peak_json(const trace::Trace& trace,
                                 const std::vector<trace::Lifetime>& lifetimes);

}  // namespace peakbench::analysis
