#include "reports/trends/trend_view.h"

#include <algorithm>
#include <map>
#include <set>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/run/figures.h"
#include "reports/trends/views.h"

namespace peakbench::trends {
namespace {

using reports::printable;

constexpr const char* kRoot = "../";
constexpr std::size_t kPointsListed = 100, kChangesListed = 100;

bool changed(const Trend& trend, std::size_t place) {
  if (place == 0) return false;
  const auto& now = trend[place];
  const auto& before = trend[place - 1];
  return !now.break_reason.empty() || now.clock_back || now.point.status != before.point.status ||
         now.point.allocated_bytes != before.point.allocated_bytes ||
         now.point.figures != before.point.figures;
}

std::string options_text(const Series& series) {  // "memory=60GiB, count=2"; "" for none
  const auto options = nlohmann::json::parse(series.device_options, nullptr, false);
  if (!options.is_object()) return printable(series.device_options);
  std::string text;
  for (const auto& [name, value] : options.items())
    text += (text.empty() ? "" : ", ") + name + "=" +
            (value.is_string() ? value.get<std::string>() : value.dump());
  return printable(text);
}

std::string setting_text(const Series& series) {  // "fp32, batch 1"
  std::string text;
  for (const auto& setting : reports::settings_view(series.axes))
    text += (text.empty() ? "" : ", ") + setting.short_text;
  return text;
}

template <typename View>
void add_series(const Series& series, View& view) {
  view.case_id = printable(series.case_id);
  view.model = printable(series.text("model"));
  view.strategy = printable(series.text("strategy"));
  view.setting = setting_text(series);
  view.options = options_text(series);
}

// What both kinds of row say of a point, and of the one before it.
template <typename Row>
void add_point(const TrendPoint* before, const TrendPoint& now, Row& row) {
  const auto& point = now.point;
  if (point.status != "ok")
    row.status = printable(reports::status_label(records::status_from_string(point.status)));
  if (point.allocated_bytes) {
    row.gib = reports::gib(*point.allocated_bytes);
    row.bytes = reports::grouped(*point.allocated_bytes);
  }
  if (point.step_ns) row.step_ms = reports::milliseconds(*point.step_ns);
  row.change = change_words(before, now, Metric::kAllocated);
  if (!row.change.empty()) {
    row.more = *point.allocated_bytes > *before->point.allocated_bytes;
    row.less = !row.more;
  }
  row.break_reason = printable(now.break_reason);
}

PointRowView row_view(const Contents& contents, const Trend& trend, std::size_t place) {
  const auto& now = trend[place];
  const auto& point = now.point;
  const auto* before = place == 0 ? nullptr : &trend[place - 1];
  PointRowView row;
  row.run = run_view(contents, *now.run, kRoot);
  add_point(before, now, row);
  row.clock_back = now.clock_back;
  if (point.requested_bytes) row.requested = reports::grouped(*point.requested_bytes);
  if (point.reserved_bytes) row.reserved = reports::gib(*point.reserved_bytes);
  row.figures = printable(doubt(point));
  return row;
}

void add_rows(const Contents& contents, const Trend& trend, TrendView& view) {
  std::size_t more_changes = 0;
  for (std::size_t place = trend.size(); place-- > 0;) {
    if (view.points.size() < kPointsListed) view.points.push_back(row_view(contents, trend, place));
    if (!changed(trend, place)) continue;
    if (view.changes.size() < kChangesListed)
      view.changes.push_back(row_view(contents, trend, place));
    else
      ++more_changes;
  }
  view.points_left_out = reports::unless_zero(trend.size() - view.points.size());
  view.changes_left_out = reports::unless_zero(more_changes);
}

}  // namespace

TrendView trend_view(const Contents& contents, const Series& series, const Trend& trend) {
  const auto link = run_link(contents, kRoot);
  TrendView view;
  view.site = site_view(contents, kRoot);
  add_series(series, view);
  view.card = printable(series.card);
  view.emulated = series.emulated;
  view.memory = chart_view(trend, Metric::kAllocated, link);
  view.step = chart_view(trend, Metric::kStep, link);
  view.has_reserved = std::ranges::any_of(
      trend, [](const auto& point) { return point.point.reserved_bytes.has_value(); });
  add_rows(contents, trend, view);
  return view;
}

namespace {

constexpr std::size_t kRecentRuns = 12;

TrendRowView row_view(const Series& series, const Trend& trend,
                      const std::set<std::int64_t>& newest) {
  const auto& point = trend.back().point;
  const auto* before = trend.size() < 2 ? nullptr : &trend[trend.size() - 2];
  TrendRowView row;
  add_series(series, row);
  row.href = trend_page(series);
  row.ok = point.status == "ok";
  row.spark = spark_path(trend, Metric::kAllocated);
  row.spark_y = row.spark.substr(row.spark.rfind(' ') + 1);
  row.run = std::to_string(point.run);
  row.old = newest.count(point.run) == 0;
  add_point(before, trend.back(), row);
  row.incomparable = !row.break_reason.empty();
  row.compared = before != nullptr && !row.incomparable && before->point.allocated_bytes &&
                 point.allocated_bytes;
  return row;
}

void add_row(TrendRowView row, const Series& series, CardView& card) {
  card.card = printable(series.card);
  card.emulated = series.emulated;
  card.has_step = card.has_step || !row.step_ms.empty();
  card.has_options = card.has_options || !row.options.empty();
  card.rows.push_back(std::move(row));
}

}  // namespace

IndexView index_view(const Contents& contents, const std::vector<Trend>& recent) {
  IndexView view;
  view.site = site_view(contents, "");
  std::set<std::string> suites;
  std::set<std::int64_t> newest;
  for (const auto& run : contents.runs) {
    if (run.labels.branch != contents.branch || !suites.insert(run.suite).second) continue;
    newest.insert(run.number);
    view.latest.push_back(run_view(contents, run, ""));
  }
  std::map<std::string, CardView> cards;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < contents.series.size(); ++i) {
    const auto& series = contents.series[i];
    auto row = row_view(series, recent[i], newest);
    if (!row.change.empty() && !row.old) view.changes.push_back(row);
    if (row.compared && !row.old) ++compared;
    add_row(std::move(row), series, cards[series.card]);
  }
  if (compared > 0) view.compared_count = reports::grouped(compared);
  for (auto& [name, card] : cards) view.cards.push_back(std::move(card));
  for (std::size_t i = 0; i < std::min(kRecentRuns, contents.runs.size()); ++i)
    view.recent.push_back(run_view(contents, contents.runs[i], ""));
  return view;
}

}  // namespace peakbench::trends
