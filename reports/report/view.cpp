#include "reports/report/view.h"

#include <algorithm>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "result/device.h"

namespace peakbench::reports {
namespace {

using result::CaseResult;
using result::Run;

// Of those that were asked for.
template <typename Predicate>
std::size_t count_cases(const std::vector<Run>& runs, Predicate predicate) {
  std::size_t count = 0;
  for (const Run& run : runs)
    for (const CaseResult& result : run.cases)
      if (result.added_for.empty() && predicate(result)) ++count;
  return count;
}

std::string unless_zero(std::size_t count) {
  return count ? grouped(static_cast<std::int64_t>(count)) : "";
}

void add_counts(const std::vector<Run>& runs, ReportView& view) {
  const std::size_t all = count_cases(runs, [](const CaseResult&) { return true; });
  const std::size_t ok = count_cases(runs, ran);
  const std::size_t emulated = count_cases(runs, result::is_emulated);
  for (const Run& run : runs)
    for (const std::string& id : run.pending) view.pending.push_back(printable(id));
  view.one_case = all == 1;
  view.case_count = grouped(static_cast<std::int64_t>(all));
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
