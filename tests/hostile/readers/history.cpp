// A history: what list, show, trend, check and export ask of it.
#include "reports/trends/history.h"

#include "readers/readers.h"

namespace peakbench::hostile {
namespace {

constexpr std::int64_t kMostRuns = 4;
constexpr std::size_t kMostSeries = 8;

}  // namespace

void read_history_file(const std::string& path) {
  const auto history = trends::History::open_to_read(path, 0);
  history.problems();
  const auto branch = history.default_branch();
  trends::Filter newest;
  newest.limit = kMostRuns;
  for (const auto& row : history.runs(newest)) {
    history.record(row.number);
    history.parts(row.number);
  }
  auto series = history.series();
  if (series.size() > kMostSeries) series.resize(kMostSeries);
  for (const auto& one : series) history.points(one.id, branch, 100);
}

}  // namespace peakbench::hostile
