// Which of our strategies make a part of memory smaller.
#pragma once

#include <string>
#include <vector>

#include "trace/lifetimes.h"
#include "trace/trace.h"

namespace peakbench::analysis {

struct Against {
  std::string cost;                     // the manifests' word for the part: "optimizer_state"
  std::vector<std::string> strategies;  // ids, those that need least of a program first
};

// Of what is allocated in a phase under a category; no strategies where none is meant for it. What
// each makes of the part is in its manifest (`cost`), in words.
Against strategies_against(trace::Category category, trace::Phase phase);

// The same for a user's program, of whose training only the trace is known: none where it only
// evaluates, checkpoints already, or has another optimizer than those that a strategy stands for.
Against strategies_for_program(const trace::Trace& trace, trace::Category category,
                               trace::Phase phase);

}  // namespace peakbench::analysis
