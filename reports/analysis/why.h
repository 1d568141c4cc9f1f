// What a program's peak is made of, in the sentences that a person needs first: where it is, the
// lines of code that hold it, and what looks like a mistake. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/lines.h"

namespace peakbench::analysis {

enum class FindingKind : std::uint8_t {
  kOutOfMemory,  // what was asked for, by which line, and what filled the card
  kGrowth,       // every step begins with more than the one before
  kEvaluation,   // activations of an evaluation are alive at the peak
  kKept,         // what a step allocated is alive two steps later
  kCheckpoint,   // more is allocated after a checkpoint than before it
  kInputs,       // the step of the peak has larger inputs than the others
};
const char* to_string(FindingKind kind);  // "out_of_memory", "growth", ...

struct Finding {
  FindingKind kind = FindingKind::kKept;
  std::string sentence;    // plain text, with names from the trace as they are
  std::int64_t bytes = 0;  // asked for; a step; of the line; of the inputs
  trace::SourceLine line;  // its file empty where no line is known
};

struct Why {
  std::string peak;               // empty where no stacks were recorded: then there is no finding
  std::vector<Finding> findings;  // in the order of FindingKind
};

// Of the trace's own space. A finding is there only where the figures say so; what is below a
// thousandth of the peak is not told (an evaluation: a hundredth, as its outputs are to stay).
Why why(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes);

}  // namespace peakbench::analysis
