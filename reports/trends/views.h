#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/render/record.h"
#include "reports/trends/chart.h"
#include "reports/trends/history.h"
#include "reports/trends/publish.h"

namespace peakbench::trends {

// What every page of a site needs, and what all of them show. For this module alone. Every text of
// a view is safe to show.

// Read once.
struct Contents {
  std::string title, branch;
  std::vector<RunRow> runs;                    // of all branches, the newest first
  std::set<std::int64_t> clocks_back;          // runs whose clock is behind the run's before it
  std::set<std::int64_t> reports;              // runs with a report here
  std::map<std::int64_t, std::size_t> places;  // run -> its place in `runs`
  std::vector<Series> series;                  // with a point on the branch
  bool comparison = false;
};

struct SiteView {
  PEAKBENCH_VIEW(text(title, "The site's title"),
                 text(branch, "The branch that trends show"),
                 text(root, "From this page to the index: empty, `../` or `../../`"),
                 text(runs, "The same with its word: `1 run`, `2 runs`"),
                 text(branch_runs, "So of the branch"),
                 text(trends, "So of cases"),
                 text(report_count, "Runs that have a report here"),
                 shown("several_reports", report_count != "1", "`report_count` is not one"),
                 text(newest, "When the newest run began, for people"),
                 text(newest_iso, "The same, RFC 3339"),
                 flag(comparison, "There is a comparison"));
};

SiteView site_view(const Contents& contents, const std::string& root);

struct RunView {
  PEAKBENCH_VIEW(text(number, "As `peakbench history list` numbers it"),
                 text(anchor, "An id for links"),
                 text(href, "Its report, or its place in the list of runs"),
                 flag(has_report, "It has a report here"),
                 text(created, "When it began, for people"),
                 text(created_iso, "The same, RFC 3339"),
                 text(branch, "Branch"),
                 text(commit, "The first twelve characters"),
                 text(commit_full, "All of them"),
                 text(verdict, "passed, regressed, failed, unknown, accepted, or empty"),
                 text(verdict_label, "In words"),
                 flag(bad, "regressed or failed"),
                 flag(good, "passed or accepted"),
                 text(note, "Why it was accepted"),
                 text(title, "The run's title"),
                 text(suite, "Suite file"),
                 text(cases, "How many cases"),
                 text(ok, "How many ended ok"),
                 text(status, "interrupted, where it was; else empty"),
                 text(libtorch, "LibTorch's version"),
                 text(driver, "The driver's, where there is one"),
                 flag(clock_back, "Created earlier than the previous run (clock skew)"));
};

RunView run_view(const Contents& contents, const RunRow& run, const std::string& root);
// From a page at `root` to a run's report, or its line in the list of runs.
LinkTo run_link(const Contents& contents, const std::string& root);

// What a site's files are called. Stable: a link that was sent stays good.

std::string trend_page(const Series& series);  // "trends/vit-l-16-...-0a1b2c3d.html"
std::string report_page(std::int64_t run);     // "runs/12/index.html"
std::string runs_page(std::size_t number);     // "runs/index.html", "runs/page-2.html"

// The list of runs, in pages.

struct PageLinkView {
  PEAKBENCH_VIEW(text(number, "1-based"),
                 text(href, "From this page"),
                 flag(here, "This page"));
};

struct RunsView {
  PEAKBENCH_VIEW(object(SiteView, site, "On every page"),
                 list(RunView, runs, "Runs of all branches, the newest first"),
                 shown("several_pages", pages.size() > 1, "There is more than one page"),
                 list(PageLinkView, pages, "All pages of the list"),
                 text(page, "1-based"));
};

RunsView runs_view(const Contents& contents, std::size_t page);
std::size_t runs_pages(const Contents& contents);

// The newest run of the branch against the last good one before it. For this module alone.

// A page (reports/compare/render.h). nullopt where the newest run has none before it, on its branch
// and of its suite, and where the two have no case in common, which is no mistake here: a suite may
// change. Throws ConfigError for a wrong template.
std::optional<std::string> comparison_page(const History& history, const Contents& contents,
                                           const Options& options);

}  // namespace peakbench::trends
