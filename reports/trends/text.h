// The history for a terminal, and a trend as JSON. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/trends/read.h"

namespace peakbench::trends {

std::string runs_table(const std::vector<RunRow>& runs, int width);
// Facts about a run other than its cases, a line each.
std::string run_text(const RunRow& run);

// A line about a run that is not shown.
std::string left_out_text(std::int64_t number, const std::string& why);

// Against the point before, where both are comparable: "+512 B", "−1.2%", "0"; else "".
std::string change_text(const std::vector<TrendPoint>& trend, std::size_t place, Metric metric);

// A line of block characters, from the least to the most; a gap where there is no figure.
std::string sparkline(const std::vector<TrendPoint>& trend, Metric metric);

struct NamedTrend {
  Series series;
  std::vector<TrendPoint> points;
};
nlohmann::ordered_json to_json(const NamedTrend& trend);
// One line a series: its last figure, what changed, how it went.
std::string trends_table(const std::vector<NamedTrend>& trends, Metric metric, int width);
// One series, a line a point, the newest last.
std::string points_table(const NamedTrend& trend, Metric metric, int width);

}  // namespace peakbench::trends
