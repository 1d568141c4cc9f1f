#include "launch/case_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "launch/case.h"
#include "launch/equivalence_check.h"
#include "launch/plugin_builds.h"

namespace peakbench::launch {
namespace {

// Those that have not been run yet, or that the machine failed.
std::set<std::string> cases_without_memory(const planning::Plan& plan, const records::Run& run) {
  std::set<std::string> ids;
  for (const auto& planned : plan.cases) ids.insert(planned.spec.id);
  for (const auto& one : run.cases)
    if (is_measured(one)) ids.erase(one.spec.id);
  return ids;
}

// The machine failed its reference, which runs first.
bool waits_for(const records::CaseResult& one, const std::set<std::string>& lost) {
  return one.memory && one.equivalence && one.equivalence->verdict == "not_checked" &&
         lost.count(one.equivalence->reference_case) != 0;
}

// Empty: its figures are those of today's plugins.
std::string why_outdated(const records::CaseResult& one, const planning::PlannedCase& planned) {
  const auto now = planned.decided ? std::vector<records::PluginBuild>{} : plugin_builds(planned);
  if (one.plugins.empty() && !now.empty())
    return "the run does not record the builds of their plugins";
  return other_builds(one.plugins, now);
}

// The case that this one's promise was checked against; empty: it was not.
std::string checked_against(const records::CaseResult& one) {
  const auto& found = one.equivalence;
  return found && found->verdict != "not_checked" ? found->reference_case : "";
}

// What a reference left to be held against is deleted: its memory is measured again for it.
void check_again(CaseStates& states, std::size_t reference) {
  auto& result = states.results[reference];
  if (!result || states.pending.contains(reference)) return;
  states.to_check[reference] = std::move(*result);
  result.reset();
  states.pending.insert(reference);
}

}  // namespace

CaseStates take_over(const planning::Plan& plan, records::Run& run) {
  CaseStates states;
  states.results.resize(plan.cases.size());
  std::map<std::string, std::size_t> index_of;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const auto& spec = plan.cases[i].spec;
    states.has_times.push_back(has_times(spec));
    index_of[spec.id] = i;
    states.pending.insert(i);
  }
  const auto lost = cases_without_memory(plan, run);
  std::set<std::string> references;  // of those that are measured again
  for (auto& one : run.cases) {
    const auto index = index_of.at(one.spec.id);
    if (!is_measured(one)) continue;
    if (auto why = why_outdated(one, plan.cases[index]); !why.empty()) {
      states.outdated[index] = std::move(why);
      references.insert(checked_against(one));
      continue;
    }
    if (waits_for(one, lost)) {
      states.to_check[index] = std::move(one);
      continue;
    }
    if (one.status != records::Status::kHostFailure) states.pending.erase(index);
    forget_host_failure(one);
    states.results[index] = std::move(one);
  }
  for (const auto& id : run.pending) states.pending.insert(index_of.at(id));
  for (const auto& id : references)
    if (const auto found = index_of.find(id); found != index_of.end())
      check_again(states, found->second);
  run.cases.clear();
  return states;
}

std::vector<std::string> words_on_outdated(const CaseStates& states) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [index, why] : states.outdated) ++counts[why];
  std::vector<std::string> words;
  for (const auto& [why, count] : counts)
    words.push_back(fmt::format("{} measured again: {}",
                                count == 1 ? "1 case is" : fmt::format("{} cases are", count),
                                why));
  return words;
}

void take_memory(CaseStates& states, std::size_t index, records::CaseResult found) {
  auto& result = states.results[index].emplace(std::move(found));
  const auto before = states.to_check.find(index);
  if (before == states.to_check.end() || result.status != records::Status::kOk) return;
  result.throughput = before->second.throughput;
  result.throughput_reason = before->second.throughput_reason;
  result.settings.update(before->second.settings);
  result.environment.update(before->second.environment);
  result.wall_ns += before->second.wall_ns;
}

std::vector<const records::CaseResult*> measured_cases(const CaseStates& states) {
  std::vector<const records::CaseResult*> measured;
  for (const auto& one : states.results)
    measured.push_back(one && is_measured(*one) ? &*one : nullptr);
  return measured;
}

bool has_times(const CaseStates& states, const Cases& group) {
  return std::ranges::any_of(group, [&](std::size_t index) { return states.has_times[index]; });
}

std::vector<Cases> pending_groups(const planning::Plan& plan, const CaseStates& states) {
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
