// The history for a terminal. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/trends/read.h"

namespace peakbench::cli {

std::string runs_table(const std::vector<trends::RunRow>& runs, int width);

// A line about a run that is not shown.
std::string left_out_text(std::int64_t number, const std::string& why);

// "1.234 GiB" or "12.3 ms"; "" where there is none.
std::string figure_text(const trends::Point& point, trends::Metric metric);
// Against the point before, where both are comparable: "+512 B", "−1.2%", "0"; else "".
std::string change_text(const std::vector<trends::TrendPoint>& trend, std::size_t place,
                        trends::Metric metric);

// A line of block characters, from the least to the most; a gap where there is no figure.
std::string sparkline(const std::vector<trends::TrendPoint>& trend, trends::Metric metric);

struct NamedTrend {
  trends::Series series;
  std::vector<trends::TrendPoint> points;
};
// One line a series: its last figure, what changed, how it went.
std::string trends_table(const std::vector<NamedTrend>& trends, trends::Metric metric, int width);
// One series, a line a point, the newest last.
std::string points_table(const NamedTrend& trend, trends::Metric metric, int width);

}  // namespace peakbench::cli
