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
  std::vector<trends::RunRow> runs;            // of all branches, the newest first
  std::set<std::int64_t> clocks_back;          // runs whose clock is behind the run's before it
  std::set<std::int64_t> reports;              // runs with a report here
  std::map<std::int64_t, std::size_t> places;  // run -> its place in `runs`
  std::vector<trends::Series> series;          // with a point on the branch
  bool comparison = false;
};

struct SiteView {
  std::string title, branch, root, report_count;
  std::string runs, branch_runs, trends;
  std::string newest, newest_iso;
  bool comparison = false;

  FieldValues fields() const {
    return {{"title", title, "The site's title"},
            {"branch", branch, "The branch that trends show"},
            {"root", root, "From this page to the index: empty, `../` or `../../`"},
            {"runs", runs, "The same with its word: `1 run`, `2 runs`"},
            {"branch_runs", branch_runs, "So of the branch"},
            {"trends", trends, "So of cases"},
            {"report_count", report_count, "Runs that have a report here"},
            {"several_reports", report_count != "1", "`report_count` is not one"},
            {"newest", newest, "When the newest run began, for people"},
            {"newest_iso", newest_iso, "The same, RFC 3339"},
            {"comparison", comparison, "There is a comparison"}};
  }
};

SiteView site_view(const Contents& contents, const std::string& root);

struct RunView {
  std::string number, anchor, href, created, created_iso, branch, commit, commit_full;
  std::string verdict, verdict_label, note, title, suite, cases, ok, status, libtorch, driver;
  bool has_report = false, bad = false, good = false, clock_back = false;

  FieldValues fields() const {
    return {{"number", number, "As `peakbench history list` numbers it"},
            {"anchor", anchor, "An id for links"},
            {"href", href, "Its report, or its place in the list of runs"},
            {"has_report", has_report, "It has a report here"},
            {"created", created, "When it began, for people"},
            {"created_iso", created_iso, "The same, RFC 3339"},
            {"branch", branch, "Branch"},
            {"commit", commit, "The first twelve characters"},
            {"commit_full", commit_full, "All of them"},
            {"verdict", verdict, "passed, regressed, failed, unknown, accepted, or empty"},
            {"verdict_label", verdict_label, "In words"},
            {"bad", bad, "regressed or failed"},
            {"good", good, "passed or accepted"},
            {"note", note, "Why it was accepted"},
            {"title", title, "The run's title"},
            {"suite", suite, "Suite file"},
            {"cases", cases, "How many cases"},
            {"ok", ok, "How many ended ok"},
            {"status", status, "interrupted, where it was; else empty"},
            {"libtorch", libtorch, "LibTorch's version"},
            {"driver", driver, "The driver's, where there is one"},
            {"clock_back", clock_back, "Created earlier than the previous run (clock skew)"}};
  }
};

RunView run_view(const Contents& contents, const trends::RunRow& run, const std::string& root);
// From a page at `root` to a run's report, or its line in the list of runs.
LinkTo run_link(const Contents& contents, const std::string& root);

std::string options_text(const trends::Series& series);  // "memory=60GiB, count=2"; "" for none
std::string setting_text(const trends::Series& series);  // "fp32, batch 1"

// What a site's files are called. Stable: a link that was sent stays good.

// A safe file name from any text, unique by a short hash of it.
std::string safe_name(const std::string& text);

std::string trend_page(const trends::Series& series);  // "trends/vit-l-16-...-0a1b2c3d.html"
std::string report_page(std::int64_t run);             // "runs/12/index.html"
std::string runs_page(std::size_t number);             // "runs/index.html", "runs/page-2.html"
std::string run_anchor(std::int64_t run);              // "run-12"

// The list of runs, in pages.

struct PageLinkView {
  std::string number, href;
  bool here = false;

  FieldValues fields() const {
    return {{"number", number, "1-based"},
            {"href", href, "From this page"},
            {"here", here, "This page"}};
  }
};

struct RunsView {
  SiteView site;
  std::vector<RunView> runs;
  std::vector<PageLinkView> pages;
  std::string page;

  FieldValues fields() const {
    return {{"site", site, "On every page"},
            {"runs", runs, "Runs of all branches, the newest first"},
            {"several_pages", pages.size() > 1, "There is more than one page"},
            {"pages", pages, "All pages of the list"},
            {"page", page, "1-based"}};
  }
};

RunsView runs_view(const Contents& contents, std::size_t page);
std::size_t runs_pages(const Contents& contents);

// The newest run of the branch against the last good one before it. For this module alone.

struct Pair {
  trends::RunRow base, now;
};

// nullopt where the newest run has none before it, on its branch and of its suite. Where none of
// these is good, the one before it.
std::optional<Pair> latest_pair(const Contents& contents);

// A page (reports/compare/render.h). nullopt where the two have no case in common, which is no
// mistake here: a suite may change. Throws ConfigError for a wrong template.
std::optional<std::string> comparison_page(const trends::History& history, const Pair& pair,
                                           const Options& options);

}  // namespace peakbench::trends
