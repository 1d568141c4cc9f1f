// A trend as a drawing: every place 0 to 1000, the template has the sizes. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/run/figures.h"
#include "reports/trends/read.h"

namespace peakbench::trends {

struct LineView {
  PEAKBENCH_VIEW(text(path, "An SVG path in a box 1000 wide and high"));
};

struct PointView {
  PEAKBENCH_VIEW(text(x, "Per cent from the left"),
                 text(y, "Per cent from the bottom"),
                 text(href, "Its run"),
                 text(label, "Run, date, commit, figure, change"),
                 flag(failed, "No figure: the case did not end ok"),
                 flag(worse, "A gate found its run worse"),
                 flag(changed, "Memory, and not as at the point before"),
                 flag(quiet, "None of these, and not the last"));
};

struct BreakView {
  PEAKBENCH_VIEW(text(x, "Per cent from the left"),
                 text(label, "What changed"),
                 text(number, "1-based"));
};

struct DateView {
  PEAKBENCH_VIEW(text(label, "A date"),
                 text(at, "Its place, 0 to 1"),
                 flag(minor, "May be left out where there is little room"));
};

struct ChartView {
  PEAKBENCH_VIEW(text(unit, "GiB, MiB, KiB, bytes or ms"),
                 text(from, "Where the axis begins to count, when not at 0"),
                 text(count, "How many points there are"),
                 text(runs, "The same with its word: `1 run`"),
                 text(drawn, "How many are drawn, where not all"),
                 flag(many, "More than sixty are drawn"),
                 list(LineView, lines, "One a stretch of comparable points"),
                 list(PointView, points, "Each leads to its run"),
                 shown("has_breaks", !breaks.empty(), "`breaks` is not empty"),
                 list(BreakView, breaks, "Where points cannot be compared"),
                 list(reports::TickView, y_ticks, "Ticks of the figure"),
                 list(DateView, x_ticks, "Ticks of the runs, evenly"));
};

using Trend = std::vector<TrendPoint>;
using LinkTo = std::function<std::string(std::int64_t run)>;

inline constexpr std::size_t kDrawnInFull = 400;  // points; beyond that some are left out

// Which points are drawn: all of them, or of each stretch the first, the least, the largest and the
// last, and every one whose status or comparability changes.
std::vector<std::size_t> drawn_points(const Trend& trend, Metric metric);

// nullopt where no point has the figure.
std::optional<ChartView> chart_view(const Trend& trend, Metric metric, const LinkTo& link);

// An SVG path in a box 1000 wide and high; empty where no point has the figure.
std::string spark_path(const Trend& trend, Metric metric);

// "+512 bytes", "−1.102 GiB"; for a step "+1.2%". Empty where they are equal or cannot be compared.
std::string change_words(const TrendPoint* before, const TrendPoint& now, Metric metric);

}  // namespace peakbench::trends
