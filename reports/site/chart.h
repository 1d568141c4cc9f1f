// A trend as a drawing: every place 0 to 1000, the template has the sizes. Pure.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/history/trend.h"

namespace peakbench::site {

using Trend = std::vector<history::TrendPoint>;
using LinkTo = std::function<std::string(std::int64_t run)>;

inline constexpr std::size_t kDrawnInFull = 400;  // points; beyond that some are left out

// Which points are drawn: all of them, or of each stretch the first, the least, the largest and the
// last, and every one whose status or comparability changes.
std::vector<std::size_t> drawn_points(const Trend& trend, history::Metric metric);

// The chart's fields (fields.cpp); false where no point has the figure.
nlohmann::json chart_view(const Trend& trend, history::Metric metric, const LinkTo& link);

// An SVG path in a box 1000 wide and high; empty where no point has the figure.
std::string spark_path(const Trend& trend, history::Metric metric);

// "+512 bytes", "−1.102 GiB"; for a step "+1.2%". Empty where they are equal or cannot be compared.
std::string change_words(const history::TrendPoint* before, const history::TrendPoint& now,
                         history::Metric metric);

}  // namespace peakbench::site
