// What every page of a site needs, and what all of them show. For the room's own use. Every text of
// a view is safe to show.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reports/render/record.h"
#include "reports/site/chart.h"

namespace peakbench::site {

// Read once.
struct Contents {
  std::string title, branch;
  std::vector<history::RunRow> runs;           // of all branches, the newest first
  std::set<std::int64_t> clocks_back;          // runs whose clock is behind the run's before it
  std::set<std::int64_t> reports;              // runs with a report here
  std::map<std::int64_t, std::size_t> places;  // run -> its place in `runs`
  std::vector<history::Series> series;         // with a point on the branch
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

RunView run_view(const Contents& contents, const history::RunRow& run, const std::string& root);
// From a page at `root` to a run's report, or its line in the list of runs.
LinkTo run_link(const Contents& contents, const std::string& root);

std::string options_text(const history::Series& series);  // "memory=60GiB, count=2"; "" for none
std::string setting_text(const history::Series& series);  // "fp32, batch 1"

}  // namespace peakbench::site
