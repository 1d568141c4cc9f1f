#include "reports/site/runs_view.h"

#include <algorithm>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/site/names.h"

namespace peakbench::site {
namespace {

using history::RunRow;
using reports::grouped;
using reports::printable;

constexpr std::size_t kCommitShown = 12, kRunsPerPage = 500;

std::string count_text(std::size_t count) { return grouped(static_cast<std::int64_t>(count)); }

std::string counted(std::size_t count, const std::string& what) {
  return count_text(count) + " " + what + (count == 1 ? "" : "s");
}

std::string verdict_label(const std::string& verdict) {
  if (verdict == "passed") return "passed";
  if (verdict == "regressed") return "worse";
  if (verdict == "failed") return "failed";
  if (verdict == "accepted") return "accepted";
  if (verdict == "unknown") return "not compared";
  return verdict;
}

}  // namespace

SiteView site_view(const Contents& contents, const std::string& root) {
  const auto on_branch =
      std::count_if(contents.runs.begin(), contents.runs.end(),
                    [&](const RunRow& run) { return run.labels.branch == contents.branch; });
  const auto newest =
      std::find_if(contents.runs.begin(), contents.runs.end(),
                   [&](const RunRow& run) { return run.labels.branch == contents.branch; });
  return {.title = printable(contents.title),
          .branch = contents.branch.empty() ? "(no branch)" : printable(contents.branch),
          .root = root,
          .report_count = count_text(contents.reports.size()),
          .runs = counted(contents.runs.size(), "run"),
          .branch_runs = counted(static_cast<std::size_t>(on_branch), "run"),
          .trends = counted(contents.series.size(), "case"),
          .newest = printable(reports::date_for_people(newest->created)),
          .newest_iso = printable(newest->created),
          .comparison = contents.comparison};
}

LinkTo run_link(const Contents& contents, const std::string& root) {
  return [&contents, root](std::int64_t run) {
    if (contents.reports.count(run) != 0) return root + report_page(run);
    const auto found = contents.places.find(run);
    const auto page = found == contents.places.end() ? 1 : found->second / kRunsPerPage + 1;
    return root + runs_page(page) + "#" + run_anchor(run);
  };
}

RunView run_view(const Contents& contents, const RunRow& run, const std::string& root) {
  const auto& verdict = run.labels.verdict;
  return {.number = std::to_string(run.number),
          .anchor = run_anchor(run.number),
          .href = run_link(contents, root)(run.number),
          .created = printable(reports::date_for_people(run.created)),
          .created_iso = printable(run.created),
          .branch = printable(run.labels.branch),
          .commit = printable(run.labels.commit.substr(0, kCommitShown)),
          .commit_full = printable(run.labels.commit),
          .verdict = verdict,
          .verdict_label = printable(verdict_label(verdict)),
          .note = printable(run.labels.note),
          .title = printable(run.title),
          .suite = printable(run.suite),
          .cases = grouped(run.cases),
          .ok = grouped(run.ok_cases),
          .status = run.status == "complete" ? "" : printable(run.status),
          .libtorch = printable(run.conditions.libtorch),
          .driver = printable(run.conditions.driver),
          .has_report = contents.reports.count(run.number) != 0,
          .bad = verdict == "regressed" || verdict == "failed",
          .good = verdict == "passed" || verdict == "accepted",
          .clock_back = contents.clocks_back.count(run.number) != 0};
}

std::size_t runs_pages(const Contents& contents) {
  return (contents.runs.size() + kRunsPerPage - 1) / kRunsPerPage;
}

RunsView runs_view(const Contents& contents, std::size_t page) {
  const std::string root = "../";
  RunsView view;
  view.site = site_view(contents, root);
  view.page = std::to_string(page);
  const std::size_t end = std::min(contents.runs.size(), page * kRunsPerPage);
  for (std::size_t place = (page - 1) * kRunsPerPage; place < end; ++place)
    view.runs.push_back(run_view(contents, contents.runs[place], root));
  for (std::size_t number = 1; number <= runs_pages(contents); ++number)
    view.pages.push_back({std::to_string(number), root + runs_page(number), number == page});
  return view;
}

}  // namespace peakbench::site
