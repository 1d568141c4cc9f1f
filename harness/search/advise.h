// What a case becomes with one strategy more, by running it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planning/manifest.h"
#include "planning/plan.h"
#include "records/run.h"
#include "search/fit.h"

namespace peakbench::search {

struct WithStrategy {
  std::string id = {};     // of the strategy; empty: the case as it is
  std::string stack = {};  // as in a case id
  // It ran to its end; without a limit on the card's memory, so that what does not fit is measured.
  std::optional<records::CaseResult> found = std::nullopt;
  std::string why_not = {};  // it did not: what it conflicts with or needs, or how it ended
  // The planned promise of the whole stack about training, and the stack that it is compared with.
  records::Equivalence promise = {};
  std::string reference = {};
};

// One measured case as a request: `device` in place of its own where that is not empty. A model in
// Python is one of an installed library: where a function was, the run does not say.
planning::Request request_of(const records::CaseResult& measured, const records::Run& run,
                             const std::string& device);

// The case with a stack in place of its own, called from several threads. Throws ConfigError where
// it cannot have that.
using PlanWith = std::function<planning::PlannedCase(const std::string& stack)>;

// The case whose stack that is with each of these strategies, several at a time; in their order.
// Those after a Ctrl-C say so.
std::vector<WithStrategy> try_each(const std::string& stack,
                                   const std::vector<std::string>& strategies,
                                   const PlanWith& plan_with, const TrialRunner& trials,
                                   std::size_t jobs,
                                   const std::function<void(const std::string&)>& said);

// Leaves out strategies that are seen to break their promise about training, without values. They
// are also compared with the case itself if it has the same reference.
void leave_out_broken(std::vector<WithStrategy>& tried, const WithStrategy& now);

}  // namespace peakbench::search
