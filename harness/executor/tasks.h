// How the cases of a run are dealt out to tasks. Pure.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "launch/pending_groups.h"
#include "plan/plan.h"

namespace peakbench::executor {

// Of an array: Slurm's own default limit is 1001.
inline constexpr std::size_t kMostTasks = 1000;

struct Dealing {
  // At most, of those that are not timed. Such a case takes a second or less, and a scheduler about
  // as long between two tasks.
  std::size_t cases_a_task = 32;
  std::size_t most_tasks = kMostTasks;
};

// Plan indices, a list a task, in the order in which they are measured. Cases that take turns at
// being timed (a group) stay together on one machine, with those of the group that have ended,
// which hold its reference and its rounds. Others stand alone. More tasks than `most_tasks` are
// joined.
std::vector<launch::Cases> deal(const plan::Plan& plan, const launch::CaseStates& states,
                                const std::set<std::size_t>& to_run, const Dealing& dealing);

}  // namespace peakbench::executor
