// What fills a program's memory at its peak, for a terminal and as JSON: at length, and in short.
// Pure; names from the trace stand as they are.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trace/lifetimes.h"
#include "trace/trace.h"

namespace peakbench::analysis {

// The sentences of why(), the categories, and the lines of code that hold most; what filled the
// card where memory ran out at the end, and where the program went on after that.
// `ended_of_it`: the program ended with the failure that its trace ends with.
std::string peak_text(const trace::Trace& trace, bool ended_of_it);

// Of one process of several: which one is told of.
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
  // What looks like a mistake (why.h), else the line of PyTorch against the largest part
  // (strategies_against.h). Empty: neither is known.
  std::string advice;
};

// Pure; names from the trace stand as they are.
PeakBrief peak_brief(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes);

// Under the names of run.json's `memory`: peak_allocated_bytes, peak_phase, peak_step (from 0; 0
// before the first one), at_peak; `peak_when`, the same in words; `lines`, the 32 that hold most;
// and `called_lines` (line_names.h).
nlohmann::ordered_json peak_json(const trace::Trace& trace,
                                 const std::vector<trace::Lifetime>& lifetimes);

}  // namespace peakbench::analysis
