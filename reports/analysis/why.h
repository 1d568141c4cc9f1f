// Why a program's peak is as high as it is, in sentences: where it is, the source lines that hold
// it, and probable mistakes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/lines.h"

namespace peakbench::analysis {

enum class FindingKind : std::uint8_t {
  kOutOfMemory,    // what was asked for, by which line, and what filled the card
  kGrowth,         // every step begins with more than the one before, or a buffer grows
  kEvaluation,     // activations whose graph no backward runs are alive at the peak
  kKept,           // what a line allocated in three steps or more is all alive
  kConversion,     // copies in a larger dtype are alive at the peak
  kFrozen,         // copies in a smaller dtype of frozen parameters are alive at the peak
  kElsewhere,      // optimizer state of parameters on another device is alive at the peak
  kInputs,         // the step of the peak has larger inputs than the others
  kModels,         // parameters of the same names, made anew between steps, are all alive
  kReserved,       // far more is reserved than allocated, and every step has another size
  kGathered,       // outputs of an evaluation are joined, larger with each batch
  kOutputs,        // outputs that no backward reads are alive at the peak
  kStep,           // one step needs far more than the others, of inputs of the same size
  kLoaded,         // what torch.load read is alive beside the parameters
  kCheckpointing,  // what is checkpointed is not trained, or as large as without
  kAttention,      // scores of attention are alive at the peak
  kPools,          // CUDA graphs have a private pool each
};
const char* to_string(FindingKind kind);  // "out_of_memory", "growth", ...
// The section that explains it, in the repository: "docs/how-to/causes.md#growth".
std::string page_of(std::string_view kind);

struct Finding {
  FindingKind kind = FindingKind::kKept;
  std::string sentence;    // plain text, with names from the trace as they are
  std::int64_t bytes = 0;  // asked for; a step; of the line; of the inputs; reserved
  // Of the peak's bytes, those that it explains; of larger inputs about what they make more. 0
  // where it says nothing of the peak.
  std::int64_t at_peak_bytes = 0;
  trace::SourceLine line = {};  // its file empty where no line is known
};

struct Why {
  std::string peak;  // empty where no stacks were recorded: then there is no finding
  std::int64_t peak_bytes = 0;
  std::vector<Finding> findings;  // in the order of FindingKind
};

// Findings in the trace's own space, each backed by its figures (docs/how-to/causes.md has the rule
// of each). Those below a thousandth of the peak are left out, or below a larger share.
Why why(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes);

struct Sentence {
  std::string text;
  std::string kind;  // the finding's; empty: of the peak
};

// The sentences, the most useful first:
//
// 1. what ran out;
// 2. causes of a tenth of the peak or more, the largest first;
// 3. where the peak is;
// 4. other findings.
//
// If memory ran out and something grew by a tenth of the peak or more, the growth comes first.
std::vector<Sentence> sentences_of(const Why& why);

}  // namespace peakbench::analysis
