// One case on one card over time.
#include <algorithm>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/site/names.h"
#include "reports/site/views.h"

namespace peakbench::site {
namespace {

using history::Metric;
using nlohmann::json;
using reports::printable;

constexpr const char* kRoot = "../";

bool changed(const Trend& trend, std::size_t place) {
  if (place == 0) return false;
  const auto& now = trend[place];
  const auto& before = trend[place - 1];
  return !now.break_reason.empty() || now.clock_back || now.point.status != before.point.status ||
         now.point.allocated_bytes != before.point.allocated_bytes;
}

json row_view(const Contents& contents, const Trend& trend, std::size_t place) {
  const auto& now = trend[place];
  const auto& point = now.point;
  const auto* before = place == 0 ? nullptr : &trend[place - 1];
  json row{{"run", run_view(contents, *now.run, kRoot)},
           {"break_reason", printable(now.break_reason)},
           {"clock_back", now.clock_back}};
  if (point.status != "ok")
    row["status"] = printable(reports::status_label(result::status_from_string(point.status)));
  if (point.allocated_bytes) {
    row["gib"] = reports::gib(*point.allocated_bytes);
    row["bytes"] = reports::grouped(*point.allocated_bytes);
  }
  if (point.requested_bytes) row["requested"] = reports::grouped(*point.requested_bytes);
  if (point.reserved_bytes) row["reserved"] = reports::gib(*point.reserved_bytes);
  if (point.step_ns) row["step_ms"] = reports::milliseconds(*point.step_ns);
  const auto change = change_words(before, now, Metric::kAllocated);
  row["change"] = change;
  if (!change.empty()) {
    const bool more = *point.allocated_bytes > *before->point.allocated_bytes;
    row["more"] = more;
    row["less"] = !more;
  }
  return row;
}

std::string unless_zero(std::size_t count) {
  return count == 0 ? "" : reports::grouped(static_cast<std::int64_t>(count));
}

void add_rows(const Contents& contents, const Trend& trend, json& view) {
  json changes = json::array(), points = json::array();
  std::size_t more_changes = 0;
  for (std::size_t place = trend.size(); place-- > 0;) {
    if (points.size() < kPointsListed) points.push_back(row_view(contents, trend, place));
    if (!changed(trend, place)) continue;
    if (changes.size() < kChangesListed)
      changes.push_back(row_view(contents, trend, place));
    else
      ++more_changes;
  }
  view["points_left_out"] = unless_zero(trend.size() - points.size());
  view["changes_left_out"] = unless_zero(more_changes);
  view["points"] = std::move(points);
  view["changes"] = std::move(changes);
}

}  // namespace

json trend_view(const Contents& contents, const history::Series& series, const Trend& trend) {
  const auto link = run_link(contents, kRoot);
  json view{{"site", site_view(contents, kRoot)},
            {"case", printable(series.case_id)},
            {"model", printable(series.text("model"))},
            {"strategy", printable(series.text("strategy"))},
            {"card", printable(series.card)},
            {"setting", setting_text(series)},
            {"options", printable(series.device_options)},
            {"emulated", series.emulated},
            {"memory", chart_view(trend, Metric::kAllocated, link)},
            {"step", chart_view(trend, Metric::kStep, link)}};
  view["has_step"] = view["step"].is_object();
  view["has_reserved"] = std::any_of(trend.begin(), trend.end(), [](const auto& point) {
    return point.point.reserved_bytes.has_value();
  });
  add_rows(contents, trend, view);
  return view;
}

}  // namespace peakbench::site
