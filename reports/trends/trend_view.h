#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/trends/views.h"

namespace peakbench::trends {

// One case on one card over time.

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

TrendView trend_view(const Contents& contents, const trends::Series& series, const Trend& trend);

// The first page: the newest runs, every case by card, what changed last.

inline constexpr std::size_t kSparkPoints = 60;

struct TrendRowView {
  std::string case_id, href, model, strategy, setting, options, status, gib, bytes, change;
  std::string break_reason, step_ms, spark, spark_y, run;
  bool ok = false, more = false, less = false, incomparable = false, old = false;
  bool compared = false;  // its memory, with the point before

  FieldValues fields() const {
    return {{"case", case_id, "The case id"},
            {"href", href, "Its page"},
            {"model", model, "Model and options"},
            {"strategy", strategy, "The stack"},
            {"setting", setting, "dtype, batch, sequence length"},
            {"options", options, "Device options, as they are typed"},
            {"ok", ok, "It ended ok in the last run that had it"},
            {"status", status, "How it ended, in words, where not ok"},
            {"gib", gib, "Peak allocated"},
            {"bytes", bytes, "The exact count"},
            {"change", change, "Against the point before: \"+512 bytes\"; empty where equal"},
            {"more", more, "More than the point before"},
            {"less", less, "Less than the point before"},
            {"incomparable", incomparable, "The point before cannot be compared"},
            {"break_reason", break_reason, "Why"},
            {"step_ms", step_ms, "Median step time"},
            {"spark", spark, "An SVG path of its last points, in a box 1000 wide and high"},
            {"spark_y", spark_y, "The last point's height in that box"},
            {"run", run, "The run of its last point"},
            {"old", old, "Not of the newest run of its suite"}};
  }
};

struct CardView {
  std::string card;
  bool emulated = false, has_step = false, has_options = false;
  std::vector<TrendRowView> rows;

  FieldValues fields() const {
    return {{"card", card, "The card"},
            {"emulated", emulated, "An emulated one: bytes, no times"},
            {"has_step", has_step, "Some case was timed"},
            {"has_options", has_options, "Some have options"},
            {"rows", rows, "One a case"}};
  }
};

struct IndexView {
  SiteView site;
  std::vector<RunView> latest;
  std::vector<CardView> cards;
  std::vector<TrendRowView> changes;
  std::string compared_count;
  std::vector<RunView> recent;

  FieldValues fields() const {
    return {{"site", site, "On every page"},
            {"latest", latest, "The newest run of each suite of the branch"},
            {"cards", cards, "Trends, by card"},
            {"changes", changes, "Cases whose memory changed in the newest run"},
            {"compared_count", compared_count,
             "Cases of the newest run whose memory was compared with the point before; empty for "
             "none"},
            {"recent", recent, "The newest runs, of all branches"}};
  }
};

// `recent`: the last kSparkPoints points of each series, as in Contents.
IndexView index_view(const Contents& contents, const std::vector<Trend>& recent);

}  // namespace peakbench::trends
