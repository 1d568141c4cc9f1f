#include "executor/tasks.h"

#include <algorithm>

#include "launch/reference_checkpoint.h"

namespace peakbench::executor {
namespace {

using launch::Cases;

std::size_t divided_up(std::size_t count, std::size_t by) { return (count + by - 1) / by; }

// As few as can be, and as even.
std::vector<Cases> chunks(const Cases& cases, std::size_t most) {
  std::vector<Cases> found(divided_up(cases.size(), most));
  auto from = cases.begin();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto left = static_cast<std::size_t>(cases.end() - from);
    const auto to = from + static_cast<std::ptrdiff_t>(divided_up(left, found.size() - i));
    found[i].assign(from, to);
    from = to;
  }
  return found;
}

std::vector<Cases> joined_to(std::vector<Cases> tasks, std::size_t most) {
  if (tasks.size() <= most) return tasks;
  const auto together = divided_up(tasks.size(), most);
  std::vector<Cases> fewer(divided_up(tasks.size(), together));
  for (std::size_t i = 0; i < tasks.size(); ++i)
    fewer[i / together].insert(fewer[i / together].end(), tasks[i].begin(), tasks[i].end());
  return fewer;
}

}  // namespace

std::vector<Cases> deal(const plan::Plan& plan, const launch::CaseStates& states,
                        const std::set<std::size_t>& to_run, const Dealing& dealing) {
  Cases alone;
  std::vector<Cases> timed;
  for (const auto& group : launch::execution_groups(plan)) {
    const auto runs = [&](std::size_t index) { return to_run.contains(index); };
    if (std::ranges::none_of(group, runs)) continue;
    if (launch::has_times(states, group))
      timed.push_back(group);
    else
      std::ranges::copy_if(group, std::back_inserter(alone), runs);
  }
  auto tasks = chunks(alone, dealing.cases_a_task);
  tasks.insert(tasks.end(), timed.begin(), timed.end());
  return joined_to(std::move(tasks), dealing.most_tasks);
}

}  // namespace peakbench::executor
