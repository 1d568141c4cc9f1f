// One case on one card over time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/site/views.h"

namespace peakbench::site {

struct PointRowView {
  RunView run;
  std::string status, gib, bytes, requested, reserved, step_ms, change, break_reason, figures;
  bool more = false, less = false, clock_back = false;

  FieldValues fields() const {
    return {
        {"run", run, "Its run"},
        {"status", status, "How the case ended, in words, where not ok"},
        {"gib", gib, "Peak allocated"},
        {"bytes", bytes, "The exact count"},
        {"requested", requested, "Peak requested, the exact count"},
        {"reserved", reserved, "Peak reserved, GiB"},
        {"figures", figures,
         "How far they can be relied on, where not exact: exact if, lower bound, ..."},
        {"step_ms", step_ms, "Median step time"},
        {"change", change, "Of allocated, against the point before"},
        {"more", more, "More than the point before"},
        {"less", less, "Less than the point before"},
        {"break_reason", break_reason, "What makes it incomparable with the point before"},
        {"clock_back", clock_back, "The run's clock says that it came before the point before"}};
  }
};

struct TrendView {
  SiteView site;
  std::string case_id, model, strategy, card, setting, options, changes_left_out, points_left_out;
  bool emulated = false, has_reserved = false;
  std::optional<ChartView> memory, step;
  std::vector<PointRowView> changes, points;

  FieldValues fields() const {
    return {
        {"site", site, "On every page"},
        {"case", case_id, "The case id"},
        {"model", model, "Model and options"},
        {"strategy", strategy, "The stack"},
        {"card", card, "The card"},
        {"setting", setting, "dtype, batch, ..."},
        {"options", options, "Device options, as they are typed"},
        {"emulated", emulated, "An emulated card"},
        {"memory", memory, "Peak allocated; absent where there is none"},
        {"step", step, "Median step time; absent where there is none"},
        {"has_step", step.has_value(), "Some point was timed"},
        {"has_reserved", has_reserved, "Some has reserved memory"},
        {"changes", changes,
         "Points where the figure, the outcome or the conditions changed, the newest first"},
        {"changes_left_out", changes_left_out, "How many older ones are not listed; empty if none"},
        {"points", points, "The newest points, the newest first"},
        {"points_left_out", points_left_out, "How many older ones are not listed; empty if none"}};
  }
};

TrendView trend_view(const Contents& contents, const history::Series& series, const Trend& trend);

}  // namespace peakbench::site
