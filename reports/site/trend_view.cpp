#include "reports/site/trend_view.h"

#include <algorithm>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::site {
namespace {

using history::Metric;
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

PointRowView row_view(const Contents& contents, const Trend& trend, std::size_t place) {
  const auto& now = trend[place];
  const auto& point = now.point;
  const auto* before = place == 0 ? nullptr : &trend[place - 1];
  PointRowView row;
  row.run = run_view(contents, *now.run, kRoot);
  row.break_reason = printable(now.break_reason);
  row.clock_back = now.clock_back;
  if (point.status != "ok")
    row.status = printable(reports::status_label(result::status_from_string(point.status)));
  if (point.allocated_bytes) {
    row.gib = reports::gib(*point.allocated_bytes);
    row.bytes = reports::grouped(*point.allocated_bytes);
  }
  if (point.requested_bytes) row.requested = reports::grouped(*point.requested_bytes);
  if (point.reserved_bytes) row.reserved = reports::gib(*point.reserved_bytes);
  row.figures = printable(history::doubt(point));
  if (point.step_ns) row.step_ms = reports::milliseconds(*point.step_ns);
  row.change = change_words(before, now, Metric::kAllocated);
  if (!row.change.empty()) {
    row.more = *point.allocated_bytes > *before->point.allocated_bytes;
    row.less = !row.more;
  }
  return row;
}

std::string unless_zero(std::size_t count) {
  return count == 0 ? "" : reports::grouped(static_cast<std::int64_t>(count));
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
  view.points_left_out = unless_zero(trend.size() - view.points.size());
  view.changes_left_out = unless_zero(more_changes);
}

}  // namespace

TrendView trend_view(const Contents& contents, const history::Series& series, const Trend& trend) {
  const auto link = run_link(contents, kRoot);
  TrendView view;
  view.site = site_view(contents, kRoot);
  view.case_id = printable(series.case_id);
  view.model = printable(series.text("model"));
  view.strategy = printable(series.text("strategy"));
  view.card = printable(series.card);
  view.setting = setting_text(series);
  view.options = options_text(series);
  view.emulated = series.emulated;
  view.memory = chart_view(trend, Metric::kAllocated, link);
  view.step = chart_view(trend, Metric::kStep, link);
  view.has_reserved = std::any_of(trend.begin(), trend.end(), [](const auto& point) {
    return point.point.reserved_bytes.has_value();
  });
  add_rows(contents, trend, view);
  return view;
}

}  // namespace peakbench::site
