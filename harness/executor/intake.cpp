#include "executor/intake.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "executor/merge.h"
#include "launch/environment.h"
#include "launch/plugin_builds.h"

namespace peakbench::executor {
namespace {

std::size_t rounds_of(const result::CaseResult& one) {
  return one.throughput ? one.throughput->rounds.size() : 0;
}

// What an earlier call's task measured may be of plugins that were built anew since.
bool is_of_today(const result::CaseResult& one, const plan::PlannedCase& planned) {
  return one.status != result::Status::kHostFailure &&
         launch::other_builds(one.plugins, launch::plugin_builds(planned)).empty();
}

}  // namespace

Intake::Intake(const plan::Plan& plan, launch::RunBook& book)
    : plan_(plan), book_(book), host_(launch::host_environment(plan)) {
  for (std::size_t i = 0; i < plan.cases.size(); ++i) index_of_[plan.cases[i].spec.id] = i;
}

launch::Cases Intake::pending_of(const launch::Cases& cases) const {
  launch::Cases left;
  std::ranges::copy_if(cases, std::back_inserter(left),
                       [&](std::size_t index) { return is_pending(index); });
  return left;
}

void Intake::take(const launch::Cases& cases, const result::Run& run, From from, bool last) {
  const std::set<std::string> unfinished(run.pending.begin(), run.pending.end());
  for (const auto& one : run.cases) {
    const auto found = index_of_.find(one.spec.id);
    if (found == index_of_.end() || std::ranges::find(cases, found->second) == cases.end())
      continue;
    const auto index = found->second;
    if (!is_pending(index)) continue;
    if (from == From::kEarlierCall && !is_of_today(one, plan_.cases[index])) continue;
    if (!unfinished.contains(one.spec.id))
      end(index, as_measured_on(run, one, index));
    else if (last)
      take_unfinished(index, run, one);
  }
}

void Intake::take_unfinished(std::size_t index, const result::Run& run,
                             const result::CaseResult& one) {
  const auto& known = book_.states().results[index];
  if (!known || rounds_of(one) > rounds_of(*known))
    book_.take_over(index, as_measured_on(run, one, index));
}

void Intake::end(std::size_t index, result::CaseResult found) {
  book_.take_over(index, std::move(found));
  book_.is_over(index);
}

result::CaseResult Intake::known(std::size_t index) const {
  if (const auto& known = book_.states().results[index]) return *known;
  const auto& planned = plan_.cases[index];
  result::CaseResult fresh;
  fresh.spec = planned.spec;
  fresh.added_for = planned.added_for;
  if (!facts_of(planned.spec.kind).has_promise) return fresh;
  fresh.equivalence = planned.promise;
  fresh.equivalence->reference_case = reference_of(index);
  return fresh;
}

result::CaseResult Intake::as_measured_on(const result::Run& run, result::CaseResult one,
                                          std::size_t index) const {
  note_machine(one, run.environment, host_);
  // The task's plan may lack the case that it is held against.
  if (one.equivalence && one.equivalence->reference_case.empty())
    one.equivalence->reference_case = reference_of(index);
  return one;
}

std::string Intake::reference_of(std::size_t index) const {
  return book_.memory_orders({index}).front().checkpoint.reference_case;
}

}  // namespace peakbench::executor
