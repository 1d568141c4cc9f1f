#include "launch/case_states.h"

#include <string>
#include <utility>

#include "launch/case.h"

namespace peakbench::launch {
namespace {

// Those that have not been run yet, or that the machine failed.
std::set<std::string> cases_without_memory(const plan::Plan& plan, const result::Run& run) {
  std::set<std::string> ids;
  for (const auto& planned : plan.cases) ids.insert(planned.spec.id);
  for (const auto& one : run.cases)
    if (is_measured(one)) ids.erase(one.spec.id);
  return ids;
}

// The machine failed its reference, which runs first.
bool waits_for(const result::CaseResult& one, const std::set<std::string>& lost) {
  return one.memory && one.equivalence && one.equivalence->verdict == "not_checked" &&
         lost.count(one.equivalence->reference_case) != 0;
}

}  // namespace

CaseStates take_over(const plan::Plan& plan, result::Run& run) {
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
  for (auto& one : run.cases) {
    const auto index = index_of.at(one.spec.id);
    if (!is_measured(one)) continue;
    if (waits_for(one, lost)) {
      states.to_check[index] = std::move(one);
      continue;
    }
    if (one.status != result::Status::kHostFailure) states.pending.erase(index);
    forget_host_failure(one);
    states.results[index] = std::move(one);
  }
  for (const auto& id : run.pending) states.pending.insert(index_of.at(id));
  run.cases.clear();
  return states;
}

void take_memory(CaseStates& states, std::size_t index, result::CaseResult found) {
  auto& result = states.results[index].emplace(std::move(found));
  const auto before = states.to_check.find(index);
  if (before == states.to_check.end() || result.status != result::Status::kOk) return;
  result.throughput = before->second.throughput;
  result.throughput_reason = before->second.throughput_reason;
  result.settings.update(before->second.settings);
  result.environment.update(before->second.environment);
  result.wall_ns += before->second.wall_ns;
}

std::vector<const result::CaseResult*> measured_cases(const CaseStates& states) {
  std::vector<const result::CaseResult*> measured;
  for (const auto& one : states.results)
    measured.push_back(one && is_measured(*one) ? &*one : nullptr);
  return measured;
}

}  // namespace peakbench::launch
