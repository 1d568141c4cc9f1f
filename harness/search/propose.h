// Proposes stacks for a search without named strategies: from manifests, reduced by measurements.
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
  kSavesNothing,  // less than a hundredth of the baseline's peak, in any phase, or with others
  kRuledOut,      // it cannot be run here, or not with cheaper strategies
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

// Proposes stacks in the order of their cost. That depends on the promises in their manifests, and
// on whether they were seen to keep data in host memory:
//
//   1. bit-identical training, nothing in host memory;
//   2. also training equal within a tolerance;
//   3. also copies to host memory;
//   4. another training problem in which all weights are trained, with what 1 and 2 have;
//   5. adapters, with what 1 and 2 have.
//
// Each level takes strategies of its own and of cheaper levels, the one with the largest saving
// first. Each must lower the peak, or that of a phase, by a hundredth of the baseline's. At the
// end, strategies are removed if the peak is as low without them. `probe` measures a stack ("": the
// baseline), and says why a stack does not run that manifests rule out.
Proposal propose(const std::vector<Candidate>& candidates, const ProbeStack& probe);

// The same for a request without strategies: for its first model, card and length, at the smallest
// size that does not fit with the baseline, or at the only size. `said` receives messages about
// measurements, from any thread, one at a time.
Proposal propose_for(const planning::Request& request, Along along, const planning::Build& build,
                     const TrialRunner& trials, std::size_t jobs,
                     const std::function<void(const std::string&)>& said);

}  // namespace peakbench::search
