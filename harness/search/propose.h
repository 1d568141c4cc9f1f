// Which stacks are worth a search where nobody named any: from what manifests say, pruned by what
// is measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launch/runner.h"
#include "planning/manifest.h"
#include "planning/plan.h"
#include "search/fit.h"
#include "search/sized_case.h"

namespace peakbench::search {

enum class WhyLeftOut {
  kSavesNothing,  // less than a hundredth of the baseline's peak, in any phase, or beside others
  kRuledOut,      // it cannot be run here, or not beside what costs less
  kTooSlow,       // one run takes this machine long, and a search has dozens
};

// A strategy that is in no stack, and why.
struct LeftOut {
  std::string stack, reason;
  WhyLeftOut why = WhyLeftOut::kRuledOut;
};

struct Proposal {
  std::vector<std::string> stacks;  // as typed; the baseline first, then from cheap to costly
  std::vector<LeftOut> left_out;    // each strategy that is in none of them
  std::string measured_at;          // "batch size 13 on a100-40gb, without a limit"
  bool interrupted = false;
};

// What is asked of one case, measured without a limit.
struct Probe {
  bool runs = false;
  std::string why_not = {};  // it does not
  // Peaks on the card, of what is allocated (of what is reserved, where steps replay a graph whose
  // memory counts as that alone), and in pinned host memory.
  std::int64_t bytes = 0, host_bytes = 0;
  std::map<std::string, std::int64_t> phases = {};  // peaks allocated: "forward" -> bytes
  bool is_slow = false;                             // `why_not` says how slow
};

// `promise` is a strategy's own; `with_adapters`: it trains adapters, or needs them.
struct Candidate {
  std::string id, promise;
  bool with_adapters = false;
};
using ProbeStack = std::function<Probe(const std::string& stack)>;

// Stacks in the order of what they cost, by their manifests' promise and by whether they were seen
// to keep anything in host memory:
//   1. bit-identical training, nothing in host memory;
//   2. training equal within a tolerance as well;
//   3. copies to host memory as well;
//   4. another training problem in which all weights are trained, with what 1 and 2 have;
//   5. adapters, with what 1 and 2 have.
// Each takes strategies of its own level and of cheaper ones, the one that saves most first, as
// long as each lowers the peak, or that of a phase, by a hundredth of the baseline's; in the end
// every one without which the peak is as low is taken out again. `probe` measures a stack, ""
// meaning the baseline; it says why a stack that manifests rule out does not run.
Proposal propose(const std::vector<Candidate>& candidates, const ProbeStack& probe);

// The same for a request without strategies: for its first model, card and length, at the size that
// the baseline just does not fit, or at the only one. `said` hears what is measured, from any
// thread, one at a time.
Proposal propose_for(const planning::Request& request, Along along, const planning::Build& build,
                     const TrialRunner& trials, std::size_t jobs,
                     const std::function<void(const std::string&)>& said);

}  // namespace peakbench::search
