// What is to be measured yet of a run, in the order in which it is. The same for a machine's own
// workers and for the tasks of a scheduler.
#pragma once

#include <cstddef>
#include <vector>

#include "launch/case_states.h"
#include "plan/plan.h"

namespace peakbench::launch {

using Cases = std::vector<std::size_t>;  // by their indices in the plan

bool has_times(const CaseStates& states, const Cases& group);

// In the order they run: of what is compared (execution_groups), the cases that are pending. First
// those of which nothing is timed.
std::vector<Cases> pending_groups(const plan::Plan& plan, const CaseStates& states);

Cases joined(const std::vector<Cases>& groups);

}  // namespace peakbench::launch
