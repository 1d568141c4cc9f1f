// Strategies stacked: in canonical order, what they promise together, and why some cannot be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planning/catalogue.h"
#include "planning/plan.h"

namespace peakbench::planning {

struct Stack {
  std::vector<Choice> choices;  // `baseline` first, then by the manifests' order, then by id
  std::vector<records::Selection>
      selections;  // as in the case id: `baseline` only alone or with options
};

// `tables`: the suite's options by id. Throws ConfigError: unknown names, a strategy twice, no
// `baseline` plugin.
Stack make_stack(const Catalogue& catalogue, const std::vector<TypedSelection>& typed,
                 const OptionTables& tables);

// What tells the parts of a stack apart: none of them, each alone, all but each. Nothing for a
// stack of fewer than two parts.
std::vector<Stack> subsets_for_ablation(const Stack& stack);

// Why two strategies cannot be in one stack, in a sentence; empty where they can.
std::string conflict_between(const planning::Entry& a, const planning::Entry& b);

// Why the strategies cannot be stacked, every pair named; empty where they can.
std::string conflict_in(const Stack& stack);

// What the strategies need and the model lacks; empty where it lacks nothing.
std::string lack_of(const planning::Entry& model, const Stack& stack);

// A sentence that names a part whose memory cannot reach all of its maxima in this many steps; else
// empty.
std::string unseen_memory(const Stack& stack, std::int64_t steps);

// What a stack's training is compared with: the stack of its baseline and of the parts that solve a
// different problem (lora of lora+checkpointing), options and all. Where the stack has a strategy
// of `checked`, all parts but these strategies stay. A stack of nothing else is its own reference.
Stack reference_of(const Stack& stack, const std::vector<std::string>& checked = {});

// What the parts that the reference lacks promise together: within_tolerance where one of them does
// not promise more, absolute and relative tolerances each added up. A stack that is its own
// reference and solves a different problem promises different_problem.
records::Equivalence promise_of(const Stack& stack, const std::vector<std::string>& checked = {});

}  // namespace peakbench::planning
