// From a history to the fields of the site's pages (fields.h). For the room's own use.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "reports/site/chart.h"

namespace peakbench::site {

// What all pages need, read once.
struct Contents {
  std::string title, branch;
  std::vector<history::RunRow> runs;           // of all branches, the newest first
  std::set<std::int64_t> clocks_back;          // runs whose clock is behind the run's before it
  std::set<std::int64_t> reports;              // runs with a report here
  std::map<std::int64_t, std::size_t> places;  // run -> its place in `runs`
  std::vector<history::Series> series;         // with a point on the branch
  bool comparison = false;
};

inline constexpr std::size_t kRunsPerPage = 500;
inline constexpr std::size_t kPointsListed = 100, kChangesListed = 100;
inline constexpr std::size_t kSparkPoints = 60;

nlohmann::json site_view(const Contents& contents, const std::string& root);
nlohmann::json run_view(const Contents& contents, const history::RunRow& run,
                        const std::string& root);
// From a page at `root` to a run's report, or its line in the list of runs.
LinkTo run_link(const Contents& contents, const std::string& root);

// `recent`: the last points of each series, as in Contents.
nlohmann::json index_view(const Contents& contents, const std::vector<Trend>& recent);
nlohmann::json trend_view(const Contents& contents, const history::Series& series,
                          const Trend& trend);
nlohmann::json runs_view(const Contents& contents, std::size_t page);
std::size_t runs_pages(const Contents& contents);

// "fp32, batch 1", safe to show.
std::string setting_text(const history::Series& series);

}  // namespace peakbench::site
