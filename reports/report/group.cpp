#include "reports/report/group.h"

#include <algorithm>
#include <map>

#include "reports/render/text.h"
#include "reports/render/words.h"
#include "result/axes.h"

namespace peakbench::reports {
namespace {

using result::CaseResult;
using result::Run;

// In a table of several releases or builds the first is compared with.
bool may_be_reference(const result::Setting& setting, const Group& group, const Run& run) {
  const auto& first = group.cases.front()->spec;
  if (setting.torch != first.torch || setting.build != first.build) return false;
  if (facts_of(setting.kind).has_stack) return stack_text(setting) == run.reference;
  return !build_text(setting).empty();
}

}  // namespace

std::vector<Group> group_cases(const std::vector<Run>& runs) {
  std::vector<Group> groups;
  for (const Run& run : runs) {
    std::map<nlohmann::json, std::size_t> places;
    for (const CaseResult& result : run.cases) {
      if (!result.added_for.empty()) continue;
      const auto [found, is_new] = places.try_emplace(result::table_of(result.spec), groups.size());
      if (is_new) groups.push_back({.run = &run});
      Group& group = groups[found->second];
      group.cases.push_back(&result);
      if (!may_be_reference(result.spec, group, run)) continue;
      if (ran(result)) group.reference = &result;
      if (result.out_of_memory && result.out_of_memory->needed_allocated_bytes)
        group.reference_out = &result;
    }
    for (const CaseResult& result : run.cases) {
      const auto found = places.find(result::table_of(result.spec));
      if (!result.added_for.empty() && found != places.end())
        groups[found->second].added.push_back(&result);
    }
  }
  return groups;
}

std::optional<std::int64_t> reference_peak(const Group& group) {
  if (group.reference) return peak_of(*group.reference);
  if (group.reference_out) return group.reference_out->out_of_memory->needed_allocated_bytes;
  return std::nullopt;
}

const CaseResult* build_before(const Group& group, const CaseResult& result) {
  if (build_text(result.spec).empty()) return nullptr;
  const CaseResult* before = nullptr;
  for (const CaseResult* one : group.cases) {
    if (one == &result) return before;
    if (ran(*one) && name_alone(one->spec) == name_alone(result.spec)) before = one;
  }
  return nullptr;
}

bool ran(const CaseResult& result) { return result.status == result::Status::kOk; }

bool breaks_promise(const CaseResult& result) {
  return result.equivalence && result.equivalence->verdict == "broken";
}

bool replays_steps(const CaseResult& result) {
  return result.memory && result.memory->replays_steps;
}

bool trains_differently(const CaseResult& result) {
  return result.equivalence && trains_differently(*result.equivalence);
}

bool only_claims_training(const CaseResult& result) {
  return result.equivalence && !trains_differently(result) &&
         is_claimed(*result.equivalence, result.spec.id);
}

std::string mark_of(const CaseResult& result) {
  if (breaks_promise(result)) return "not as promised";
  if (trains_differently(result)) return "trains differently";
  return only_claims_training(result) ? "claimed" : "";
}

std::optional<std::int64_t> peak_of(const CaseResult& result) {
  return result.memory ? std::optional(result.memory->peak_allocated_bytes) : std::nullopt;
}

std::int64_t widest_bar(const Group& group) {
  std::int64_t widest = 1;
  for (const CaseResult* result : group.cases)
    widest = std::max(widest, peak_of(*result).value_or(0));
  return widest;
}

}  // namespace peakbench::reports
