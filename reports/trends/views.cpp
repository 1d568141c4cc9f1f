#include "reports/trends/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "reports/compare/render.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/trends/schema.h"
#include "reports/trends/source.h"

namespace peakbench::trends {

std::string trend_page(const Series& series) {
  const auto name = series.case_id + "\n" + series.card + "\n" + series.device_options;
  return fmt::format("trends/{}-{:08x}.html", reports::file_stem(name), checksum(name));
}

std::string report_page(std::int64_t run) { return fmt::format("runs/{}/index.html", run); }

std::string runs_page(std::size_t number) {
  return number == 1 ? "runs/index.html" : fmt::format("runs/page-{}.html", number);
}

namespace {

using reports::grouped;
using reports::printable;

constexpr std::size_t kRunsPerPage = 500;

std::string counted(std::size_t count, const std::string& what) {
  return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

std::string run_anchor(std::int64_t run) { return fmt::format("run-{}", run); }

std::string verdict_label(const std::string& verdict) {
  if (verdict == "regressed") return "worse";
  return verdict == "unknown" ? "not compared" : verdict;
}

}  // namespace

SiteView site_view(const Contents& contents, const std::string& root) {
  const auto is_of_branch = [&](const RunRow& run) { return run.labels.branch == contents.branch; };
  const auto of_branch = std::ranges::count_if(contents.runs, is_of_branch);
  const auto newest = std::ranges::find_if(contents.runs, is_of_branch);
  return {.title = printable(contents.title),
          .branch = contents.branch.empty() ? "(no branch)" : printable(contents.branch),
          .root = root,
          .runs = counted(contents.runs.size(), "run"),
          .branch_runs = counted(static_cast<std::size_t>(of_branch), "run"),
          .trends = counted(contents.series.size(), "case"),
          .report_count = grouped(contents.reports.size()),
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
          .has_report = contents.reports.count(run.number) != 0,
          .created = printable(reports::date_for_people(run.created)),
          .created_iso = printable(run.created),
          .branch = printable(run.labels.branch),
          .commit = printable(short_commit(run.labels)),
          .commit_full = printable(run.labels.commit),
          .verdict = verdict,
          .verdict_label = printable(verdict_label(verdict)),
          .bad = verdict == "regressed" || verdict == "failed",
          .good = verdict == "passed" || verdict == "accepted",
          .note = printable(run.labels.note),
          .title = printable(run.title),
          .suite = printable(run.suite),
          .cases = grouped(run.cases),
          .ok = grouped(run.ok_cases),
          .status = run.status == "complete" ? "" : printable(run.status),
          .libtorch = printable(run.conditions.libtorch),
          .driver = printable(run.conditions.driver),
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

namespace {

// Without them the comparison says that what grew is not known.
std::vector<analysis::CaseParts> parts_or_none(const History& history, const RunRow& run) {
  try {
    return history.parts(run.number);
  } catch (const ConfigError&) {
    return {};
  }
}

Source source_of(const History& history, const RunRow& run) {
  return {history.record(run.number), parts_or_none(history, run), "",
          run_label(run.labels.branch, run)};
}

// What the gate said when the run was added.
std::optional<compare::GateNote> note_of(const RunRow& run) {
  const auto& verdict = run.labels.verdict;
  if (verdict.empty()) return std::nullopt;
  return compare::GateNote{verdict == "passed" || verdict == "accepted", verdict, {}};
}

struct Pair {
  const RunRow *base, *now;
};

// The newest run of the branch and, of its suite, the last good one before it; where none of these
// is good, the one before it. nullopt without one.
std::optional<Pair> latest_pair(const Contents& contents) {
  const RunRow *now = nullptr, *before = nullptr;
  for (const auto& run : contents.runs) {
    if (run.labels.branch != contents.branch) continue;
    if (now == nullptr) {
      now = &run;
    } else if (run.suite == now->suite) {
      if (run.is_good()) return Pair{&run, now};
      if (before == nullptr) before = &run;
    }
  }
  return before == nullptr ? std::nullopt : std::optional(Pair{before, now});
}

}  // namespace

std::optional<std::string> comparison_page(const History& history, const Contents& contents,
                                           const Options& options) {
  const auto pair = latest_pair(contents);
  if (!pair) return std::nullopt;
  Source base, now;
  compare::Comparison comparison;
  try {
    base = source_of(history, *pair->base);
    now = source_of(history, *pair->now);
    comparison = compare::compare(base, now, compare::policy_of(base, now));
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  compare::PageOptions page;
  page.template_directory = options.template_directory;
  page.builtin_template_directory = options.builtin_template_directory;
  page.gate = note_of(*pair->now);
  return compare::render_html(base, now, comparison, page);
}

}  // namespace peakbench::trends
