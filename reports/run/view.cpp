#include "reports/run/view.h"

#include <algorithm>
#include <map>
#include <set>

#include "records/device.h"
#include "reports/analysis/environment.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::reports {
namespace {

using records::CaseResult;

// Missing figures, joined by what and why: a thousand cases with one reason are one line.
class Missing {
 public:
  void add(const std::string& what, const std::string& reason, const std::string& id) {
    cases_[{what, reason.empty() ? "no reason was recorded" : reason}].insert(id);
  }

  std::vector<MissingView> view() const {
    std::vector<MissingView> list;
    for (const auto& [key, ids] : cases_) {
      list.push_back({.what = key.first,
                      .reason = printable(key.second),
                      .count = grouped(ids.size()),
                      .one = ids.size() == 1,
                      .cases = {}});
      for (const std::string& id : ids)
        if (list.back().cases.size() < kShown) list.back().cases.push_back(printable(id));
    }
    return list;
  }

 private:
  static constexpr std::size_t kShown = 3;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> cases_;
};

// Nothing is to be found out about the case that the others are compared with.
bool wants_check(const CaseResult& result) {
  return result.equivalence && is_claimed(*result.equivalence, result.spec.id);
}

void add_missing(const CaseResult& result, Missing& missing) {
  const std::string& id = result.spec.id;
  if (result.status == records::Status::kHostFailure) {
    missing.add("The case", result.reason, id);
    return;
  }
  if (records::is_emulated(result)) {
    missing.add("Time", "an emulated card has no clock: its events are numbered", id);
  } else if (!result.throughput && result.status == records::Status::kOk) {
    missing.add("Throughput", result.throughput_reason, id);
  }
  if (result.status == records::Status::kOk && !result.memory) missing.add("Memory", "", id);
  if (wants_check(result)) missing.add("Equivalence of training", result.equivalence->reason, id);
}

// A device with the facts of its cases, once; a run that was resumed elsewhere has it twice.
std::vector<DeviceView> devices_view(const records::Run& run) {
  std::vector<DeviceView> list;
  for (const CaseResult& result : run.cases) {
    const auto build = build_text(result.spec);
    DeviceView device{printable(result.spec.device + (build.empty() ? "" : ", " + build)),
                      facts_view(device_facts(result))};
    const bool known = std::ranges::find(list, device) != list.end();
    if (!known && !device.facts.empty()) list.push_back(std::move(device));
  }
  return list;
}

RunView run_view(const records::Run& run) {
  return {.title = printable(run.title),
          .created = printable(date_for_people(run.created)),
          .status = printable(run.status),
          .command = printable(shell_quoted(run.command)),
          .suite = printable(run.suite),
          .environment = facts_view(run.environment),
          .devices = devices_view(run),
          .settings = facts_view(run.settings)};
}

std::vector<MissingView> not_measured_view(const std::vector<records::Run>& runs,
                                           const Anatomies& anatomies) {
  Missing missing;
  for (const records::Run& run : runs) {
    for (const CaseResult& result : run.cases)
      if (result.added_for.empty()) add_missing(result, missing);
  }
  for (const auto& [result, anatomy] : anatomies) {
    if (!anatomy.known()) missing.add("Timeline", anatomy.cause, result->spec.id);
  }
  return missing.view();
}

using records::Run;

// Of those that were asked for.
template <typename Predicate>
std::size_t count_cases(const std::vector<Run>& runs, Predicate predicate) {
  std::size_t count = 0;
  for (const Run& run : runs)
    for (const CaseResult& result : run.cases)
      if (result.added_for.empty() && predicate(result)) ++count;
  return count;
}

void add_counts(const std::vector<Run>& runs, ReportView& view) {
  const std::size_t all = count_cases(runs, [](const CaseResult&) { return true; });
  const std::size_t ok = count_cases(runs, ran);
  const std::size_t emulated = count_cases(runs, records::is_emulated);
  for (const Run& run : runs)
    for (const std::string& id : run.pending) view.pending.push_back(printable(id));
  view.one_case = all == 1;
  view.case_count = grouped(all);
  view.failed_count = unless_zero(all - ok);
  view.pending_count = unless_zero(view.pending.size());
  view.has_emulated = emulated > 0;
  view.has_measured = emulated < all;
  const std::size_t with_stack = count_cases(
      runs, [](const CaseResult& result) { return facts_of(result.spec.kind).has_stack; });
  view.has_strategies = with_stack > 0 || all == 0;
  view.has_programs = with_stack < all;
}

}  // namespace

ReportView make_view(const std::vector<Run>& runs, const Anatomies& anatomies) {
  ReportView view;
  if (!runs.empty()) {
    view.title = printable(runs.front().title);
    view.created = printable(date_for_people(runs.front().created));
    view.created_iso = printable(runs.front().created);
  }
  view.interrupted =
      std::ranges::any_of(runs, [](const Run& run) { return run.status != "complete"; });
  view.several_runs = runs.size() > 1;
  add_counts(runs, view);
  Sources sources;
  for (const Group& group : group_cases(runs))
    view.groups.push_back(
        group_view(group, view.groups.size(), view.several_runs, anatomies, sources));
  view.scaling = scaling_view(runs);
  view.sources = sources.view();
  for (const Run& run : runs) view.runs.push_back(run_view(run));
  view.not_measured = not_measured_view(runs, anatomies);
  return view;
}

}  // namespace peakbench::reports
