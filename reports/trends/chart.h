// A trend as a drawing: every place 0 to 1000, the template has the sizes. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/run/figures.h"
#include "reports/trends/read.h"

namespace peakbench::trends {

using reports::FieldValues;

struct LineView {
  std::string path;

  FieldValues fields() const { return {{"path", path, "An SVG path in a box 1000 wide and high"}}; }
};

struct PointView {
  std::string x, y, href, label;
  bool failed = false, worse = false, changed = false, quiet = false;

  FieldValues fields() const {
    return {{"x", x, "Per cent from the left"},
            {"y", y, "Per cent from the bottom"},
            {"href", href, "Its run"},
            {"label", label, "Run, date, commit, figure, change"},
            {"failed", failed, "No figure: the case did not end ok"},
            {"worse", worse, "A gate found its run worse"},
            {"changed", changed, "Memory, and not as at the point before"},
            {"quiet", quiet, "None of these, and not the last"}};
  }
};

struct BreakView {
  std::string x, label, number;

  FieldValues fields() const {
    return {{"x", x, "Per cent from the left"},
            {"label", label, "What changed"},
            {"number", number, "1-based"}};
  }
};

struct DateView {
  std::string label, at;
  bool minor = false;

  FieldValues fields() const {
    return {{"label", label, "A date"},
            {"at", at, "Its place, 0 to 1"},
            {"minor", minor, "May be left out where there is little room"}};
  }
};

struct ChartView {
  std::string unit, from, count, runs, drawn;
  bool many = false;
  std::vector<LineView> lines;
  std::vector<PointView> points;
  std::vector<BreakView> breaks;
  std::vector<reports::TickView> y_ticks;
  std::vector<DateView> x_ticks;

  FieldValues fields() const {
    return {{"unit", unit, "GiB, MiB, KiB, bytes or ms"},
            {"from", from, "Where the axis begins to count, when not at 0"},
            {"count", count, "How many points there are"},
            {"runs", runs, "The same with its word: `1 run`"},
            {"drawn", drawn, "How many are drawn, where not all"},
            {"many", many, "More than sixty are drawn"},
            {"lines", lines, "One a stretch of comparable points"},
            {"points", points, "Each leads to its run"},
            {"has_breaks", !breaks.empty(), "`breaks` is not empty"},
            {"breaks", breaks, "Where points cannot be compared"},
            {"y_ticks", y_ticks, "Ticks of the figure"},
            {"x_ticks", x_ticks, "Ticks of the runs, evenly"}};
  }
};

using Trend = std::vector<trends::TrendPoint>;
using LinkTo = std::function<std::string(std::int64_t run)>;

inline constexpr std::size_t kDrawnInFull = 400;  // points; beyond that some are left out

// Which points are drawn: all of them, or of each stretch the first, the least, the largest and the
// last, and every one whose status or comparability changes.
std::vector<std::size_t> drawn_points(const Trend& trend, trends::Metric metric);

// nullopt where no point has the figure.
std::optional<ChartView> chart_view(const Trend& trend, trends::Metric metric, const LinkTo& link);

// An SVG path in a box 1000 wide and high; empty where no point has the figure.
std::string spark_path(const Trend& trend, trends::Metric metric);

// "+512 bytes", "−1.102 GiB"; for a step "+1.2%". Empty where they are equal or cannot be compared.
std::string change_words(const trends::TrendPoint* before, const trends::TrendPoint& now,
                         trends::Metric metric);

}  // namespace peakbench::trends
