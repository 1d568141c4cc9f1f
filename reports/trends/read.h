// A series over time, each point compared with the one before it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/trends/history.h"

namespace peakbench::trends {

enum class Metric { kAllocated, kRequested, kReserved, kStep };
// "allocated", "requested", "reserved", "step". Throws ConfigError for another.
Metric metric_from(const std::string& name);

std::optional<std::int64_t> figure(const Point& point, Metric metric);  // bytes, or nanoseconds

// How far its figures can be relied on; empty where they are exact, or counted on a real device.
std::string doubt(const Point& point);

struct TrendPoint {
  Point point;
  const RunRow* run = nullptr;  // held by the Runs that the trend was made with
  // Against the point before: what makes both incomparable ("" where they may be joined by a line),
  // and whether the run's clock says that it came earlier.
  std::string break_reason;
  bool clock_back = false;
};

// The least and the most of those that have the figure; nullopt where none has.
std::optional<std::pair<std::int64_t, std::int64_t>> extremes(const std::vector<TrendPoint>& trend,
                                                              Metric metric);

// Rows of runs, read once, and which runs are not shown.
class Runs {
 public:
  explicit Runs(const History& history) : history_(history) {}
  void keep(const RunRow& run);  // one that was read, and looked at, already
  void leave_out(std::int64_t number, const std::string& why);
  void note(std::int64_t number, const std::string& why);  // a point of it is left out

  // nullptr for one that is left out, and for one that is damaged, which then is.
  const RunRow* find(std::int64_t number);
  // Runs that were read only in part, and why.
  const std::map<std::int64_t, std::string>& notes() const { return notes_; }

 private:
  const History& history_;
  std::map<std::int64_t, RunRow> rows_;
  std::set<std::int64_t> left_out_;
  std::map<std::int64_t, std::string> notes_;
};

// In the order of adding, without what is left out; of the last `limit` where it is not negative.
std::vector<TrendPoint> trend_of(const History& history, Runs& runs, const Series& series,
                                 const std::string& branch, std::int64_t limit = -1);

}  // namespace peakbench::trends
