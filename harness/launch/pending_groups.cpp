#include "launch/pending_groups.h"

#include <algorithm>
#include <utility>

#include "launch/reference_checkpoint.h"

namespace peakbench::launch {

bool has_times(const CaseStates& states, const Cases& group) {
  return std::ranges::any_of(group, [&](std::size_t index) { return states.has_times[index]; });
}

std::vector<Cases> pending_groups(const plan::Plan& plan, const CaseStates& states) {
  std::vector<Cases> groups;
  for (auto group : execution_groups(plan)) {
    std::erase_if(group, [&](std::size_t index) { return states.pending.count(index) == 0; });
    if (!group.empty()) groups.push_back(std::move(group));
  }
  // Emulated cards answer in milliseconds, and a step on the CPU takes seconds: first what is
  // quick.
  std::stable_partition(groups.begin(), groups.end(),
                        [&](const Cases& group) { return !has_times(states, group); });
  return groups;
}

Cases joined(const std::vector<Cases>& groups) {
  Cases all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace peakbench::launch
