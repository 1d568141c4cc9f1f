// Strategies stacked: in canonical order, what they promise together, and why some cannot be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/catalogue.h"
#include "plan/plan.h"

namespace peakbench::plan {

struct Stack {
  std::vector<Choice> choices;  // `baseline` first, then by the manifests' order, then by id
  std::vector<result::Selection>
      selections;  // as in the case id: `baseline` only alone or with options
};

// `tables`: the suite's options by id. Throws ConfigError: unknown names, a strategy twice, no
// `baseline` plugin.
Stack make_stack(const Catalogue& catalogue, const std::vector<TypedSelection>& typed,
                 const std::map<std::string, OptionTexts>& tables);

// What tells the parts of a stack apart: none of them, each alone, all but each. Nothing for a
// stack of fewer than two parts.
std::vector<Stack> subsets_for_shares(const Stack& stack);

// Why the strategies cannot be stacked, every pair named; empty where they can.
std::string conflict_in(const Stack& stack);

// What the strategies need and the model lacks; empty where it lacks nothing.
std::string lack_of(const manifest::Entry& model, const Stack& stack);

// The weakest promise in the stack: different_problem, then within_tolerance, then bit_identical.
// Tolerances add up.
result::Equivalence promise_of(const Stack& stack);

}  // namespace peakbench::plan
