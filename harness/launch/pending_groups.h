// The queue of a run: what is to be measured yet, in the order in which it is. The same for a
// machine's own workers and for the tasks of a scheduler.
#pragma once

#include <cstddef>
#include <vector>

#include "launch/case_states.h"
#include "plan/plan.h"

namespace peakbench::launch {

using Group = std::vector<std::size_t>;  // plan indices

bool has_times(const CaseStates& states, const Group& group);

// In the order they run: of what is compared (execution_groups), the cases that are pending. First
// those of which nothing is timed.
std::vector<Group> pending_groups(const plan::Plan& plan, const CaseStates& states);

Group joined(const std::vector<Group>& groups);

}  // namespace peakbench::launch
