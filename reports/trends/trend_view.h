#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/trends/views.h"

namespace peakbench::trends {

// One case on one card over time.

struct PointRowView {
  PEAKBENCH_VIEW(object(RunView, run, "Its run"),
                 text(status, "How the case ended, in words, where not ok"),
                 text(gib, "Peak allocated"),
                 text(bytes, "The exact count"),
                 text(requested, "Peak requested, the exact count"),
                 text(reserved, "Peak reserved, GiB"),
                 text(figures, "How far they can be relied on, where not exact: exact if, lower "
                      "bound, ..."),
                 text(step_ms, "Median step time"),
                 text(change, "Of allocated, against the point before"),
                 flag(more, "More than the point before"),
                 flag(less, "Less than the point before"),
                 text(break_reason, "What makes it incomparable with the point before"),
                 flag(clock_back, "The run's clock says that it came before the point before"));
};

struct TrendView {
  std::string case_id;
  PEAKBENCH_VIEW(object(SiteView, site, "On every page"),
                 shown("case", case_id, "The case id"),
                 text(model, "Model and options"),
                 text(strategy, "The stack"),
                 text(card, "The card"),
                 text(setting, "dtype, batch, ..."),
                 text(options, "Device options, as they are typed"),
                 flag(emulated, "An emulated card"),
                 maybe(ChartView, memory, "Peak allocated; absent if it was not measured"),
                 maybe(ChartView, step, "Median step time; absent if it was not measured"),
                 shown("has_step", step.has_value(), "Some point was timed"),
                 flag(has_reserved, "Some has reserved memory"),
                 list(PointRowView, changes, "Points where the figure, the outcome or the "
                      "conditions changed, the newest first"),
                 text(changes_left_out, "How many older ones are not listed; empty if none"),
                 list(PointRowView, points, "The newest points, the newest first"),
                 text(points_left_out, "How many older ones are not listed; empty if none"));
};

TrendView trend_view(const Contents& contents, const Series& series, const Trend& trend);

// The first page: the newest runs, every case by card, what changed last.

inline constexpr std::size_t kSparkPoints = 60;

struct TrendRowView {
  std::string case_id;
  bool compared = false;  // its memory, with the point before
  PEAKBENCH_VIEW(shown("case", case_id, "The case id"),
                 text(href, "Its page"),
                 text(model, "Model and options"),
                 text(strategy, "The stack"),
                 text(setting, "dtype, batch, sequence length"),
                 text(options, "Device options, as they are typed"),
                 flag(ok, "It ended ok in the last run that had it"),
                 text(status, "How it ended, in words, where not ok"),
                 text(gib, "Peak allocated"),
                 text(bytes, "The exact count"),
                 text(change, "Against the point before: \"+512 bytes\"; empty where equal"),
                 flag(more, "More than the point before"),
                 flag(less, "Less than the point before"),
                 flag(incomparable, "The point before cannot be compared"),
                 text(break_reason, "Why"),
                 text(step_ms, "Median step time"),
                 text(spark, "An SVG path of its last points, in a box 1000 wide and high"),
                 text(spark_y, "The last point's height in that box"),
                 text(run, "The run of its last point"),
                 flag(old, "Not of the newest run of its suite"));
};

struct CardView {
  PEAKBENCH_VIEW(text(card, "The card"),
                 flag(emulated, "An emulated one: bytes, no times"),
                 flag(has_step, "Some case was timed"),
                 flag(has_options, "Some have options"),
                 list(TrendRowView, rows, "One a case"));
};

struct IndexView {
  PEAKBENCH_VIEW(object(SiteView, site, "On every page"),
                 list(RunView, latest, "The newest run of each suite of the branch"),
                 list(CardView, cards, "Trends, by card"),
                 list(TrendRowView, changes, "Cases whose memory changed in the newest run"),
                 text(compared_count, "Cases of the newest run whose memory was compared with the "
                      "point before; empty for none"),
                 list(RunView, recent, "The newest runs, of all branches"));
};

// `recent`: the last kSparkPoints points of each series, as in Contents.
IndexView index_view(const Contents& contents, const std::vector<Trend>& recent);

}  // namespace peakbench::trends
