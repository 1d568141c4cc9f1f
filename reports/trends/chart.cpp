#include "reports/trends/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "reports/render/format.h"
#include "reports/render/text.h"

namespace peakbench::trends {
namespace {

constexpr std::size_t kStretches = 80;
constexpr std::size_t kDateTicks = 6;

// Where a value stands, and how the axis calls it. Differences too small for GiB are told from the
// least value on, in the unit that fits.
struct Axis {
  double low = 0, high = 1;  // bytes or nanoseconds
  double origin = 0, unit = 1;
  std::string name, from;

  double place(double value) const { return 1000 * (value - low) / (high - low); }
};

struct Unit {
  double size;
  const char* name;
};
constexpr std::array<Unit, 4> kBytes{
    {{1024.0 * 1024 * 1024, "GiB"}, {1024.0 * 1024, "MiB"}, {1024, "KiB"}, {1, "bytes"}}};

Axis byte_axis(double least, double most) {
  const double spread = most - least;
  Axis axis{least - spread / 6, most + spread / 6, 0, kBytes[0].size, kBytes[0].name, ""};
  if (spread == 0) {
    axis.low = least * 0.9;
    axis.high = std::max(least * 1.1, 1.0);
    return axis;
  }
  if (spread >= kBytes[0].size / 50) {
    axis.low = std::max(0.0, axis.low);
    return axis;
  }
  std::size_t unit = 1;
  while (unit + 1 < kBytes.size() && spread < 2 * kBytes.at(unit).size) ++unit;
  axis.unit = kBytes.at(unit).size;
  axis.name = kBytes.at(unit).name;
  axis.origin = least;
  axis.from = reports::grouped(static_cast<std::int64_t>(least)) + " bytes";
  return axis;
}

Axis axis_of(const Trend& trend, Metric metric) {
  const auto [least, most] =
      extremes(trend, metric).value_or(std::pair<std::int64_t, std::int64_t>());
  const auto low = static_cast<double>(least), high = static_cast<double>(most);
  if (metric != Metric::kStep) return byte_axis(low, high);
  const double room = std::max((high - low) / 6, high / 20);
  return {std::max(0.0, low - room), std::max(high + room, 1.0), 0, 1e6, "ms", ""};
}

double across(std::size_t place, std::size_t count) {
  return count < 2 ? 500 : 1000.0 * static_cast<double>(place) / static_cast<double>(count - 1);
}

// Dates of some runs, evenly; never two at one place.
std::vector<DateView> date_ticks(const Trend& trend) {
  std::vector<DateView> ticks;
  const std::size_t count = std::min(kDateTicks, trend.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = count < 2 ? 0 : i * (trend.size() - 1) / (count - 1);
    ticks.push_back({.label = reports::printable(trend[place].run->created.substr(0, 10)),
                     .at = reports::fraction(across(place, trend.size()) / 1000),
                     .minor = i != 0 && i != (count - 1) / 2 && i + 1 != count});
  }
  return ticks;
}

bool notable(const Trend& trend, std::size_t place) {
  if (place == 0 || place + 1 == trend.size()) return true;
  const auto& now = trend[place];
  return !now.break_reason.empty() || now.point.status != trend[place - 1].point.status;
}

std::string words_of(const Trend& trend, std::size_t place, Metric metric) {
  const auto& point = trend[place];
  const auto value = figure(point.point, metric);
  std::string text =
      fmt::format("run {}, {}", point.run->number, reports::date_for_people(point.run->created));
  if (!point.run->labels.commit.empty()) text += ", " + short_commit(point.run->labels);
  if (!value) return text + ": " + point.point.status;
  text += metric == Metric::kStep
              ? fmt::format(": {} ms", reports::milliseconds(*value))
              : fmt::format(": {} GiB, {} bytes", reports::gib(*value), reports::grouped(*value));
  const auto change = change_words(place == 0 ? nullptr : &trend[place - 1], point, metric);
  return change.empty() ? text : text + " (" + change + ")";
}

PointView point_view(const Trend& trend, std::size_t place, Metric metric, const Axis& axis,
                     const LinkTo& link) {
  const auto& point = trend[place];
  const auto value = figure(point.point, metric);
  const bool worse = point.run->labels.verdict == "regressed";
  const auto* before = place == 0 ? nullptr : &trend[place - 1];
  const bool changed = metric != Metric::kStep && !change_words(before, point, metric).empty();
  return {.x = reports::fraction(across(place, trend.size()) / 10),
          .y = reports::fraction(value ? axis.place(static_cast<double>(*value)) / 10 : 0),
          .href = link(point.run->number),
          .label = reports::printable(words_of(trend, place, metric)),
          .failed = !value,
          .worse = worse,
          .changed = changed,
          .quiet = value.has_value() && !worse && !changed && place + 1 != trend.size()};
}

// One path a stretch of comparable points.
std::vector<LineView> line_views(const Trend& trend, const std::vector<std::size_t>& drawn,
                                 Metric metric, const Axis& axis) {
  std::vector<LineView> lines;
  std::string path;
  const auto end = [&] {
    if (!path.empty()) lines.push_back({path});
    path.clear();
  };
  for (const auto place : drawn) {
    const auto value = figure(trend[place].point, metric);
    if (!value || !trend[place].break_reason.empty()) end();
    if (!value) continue;
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L",
                        reports::fraction(across(place, trend.size())),
                        reports::fraction(1000 - axis.place(static_cast<double>(*value))));
  }
  end();
  return lines;
}

std::vector<BreakView> break_views(const Trend& trend) {
  std::vector<BreakView> breaks;
  for (std::size_t place = 1; place < trend.size(); ++place) {
    if (trend[place].break_reason.empty()) continue;
    const double between = (across(place, trend.size()) + across(place - 1, trend.size())) / 2;
    breaks.push_back({.x = reports::fraction(between / 10),
                      .label = reports::printable(trend[place].break_reason),
                      .number = std::to_string(breaks.size() + 1)});
  }
  return breaks;
}

}  // namespace

std::vector<std::size_t> drawn_points(const Trend& trend, Metric metric) {
  std::set<std::size_t> drawn;
  if (trend.size() <= kDrawnInFull) {
    for (std::size_t place = 0; place < trend.size(); ++place) drawn.insert(place);
    return {drawn.begin(), drawn.end()};
  }
  for (std::size_t stretch = 0; stretch < kStretches; ++stretch) {
    const std::size_t first = stretch * trend.size() / kStretches;
    const std::size_t last = (stretch + 1) * trend.size() / kStretches - 1;
    std::size_t least = first, most = first;
    for (std::size_t place = first; place <= last; ++place) {
      const auto value = figure(trend[place].point, metric).value_or(0);
      if (value < figure(trend[least].point, metric).value_or(0)) least = place;
      if (value > figure(trend[most].point, metric).value_or(0)) most = place;
    }
    drawn.insert({first, least, most, last});
  }
  for (std::size_t place = 0; place < trend.size(); ++place)
    if (notable(trend, place)) drawn.insert(place);
  return {drawn.begin(), drawn.end()};
}

std::optional<ChartView> chart_view(const Trend& trend, Metric metric, const LinkTo& link) {
  if (!extremes(trend, metric)) return std::nullopt;
  const auto axis = axis_of(trend, metric);
  const auto drawn = drawn_points(trend, metric);
  ChartView view;
  view.unit = axis.name;
  view.from = axis.from;
  view.count = reports::grouped(trend.size());
  view.runs = view.count + (trend.size() == 1 ? " run" : " runs");
  if (drawn.size() < trend.size()) view.drawn = reports::grouped(drawn.size());
  view.many = drawn.size() > 60;
  view.lines = line_views(trend, drawn, metric, axis);
  for (const auto place : drawn)
    view.points.push_back(point_view(trend, place, metric, axis, link));
  view.breaks = break_views(trend);
  view.y_ticks = reports::ticks_view((axis.low - axis.origin) / axis.unit,
                                     (axis.high - axis.origin) / axis.unit, 4);
  view.x_ticks = date_ticks(trend);
  return view;
}

std::string spark_path(const Trend& trend, Metric metric) {
  const auto axis = axis_of(trend, metric);
  std::string path;
  bool joined = false;
  for (std::size_t place = 0; place < trend.size(); ++place) {
    const auto value = figure(trend[place].point, metric);
    if (!trend[place].break_reason.empty()) joined = false;
    if (value)
      path += fmt::format("{}{:.0f} {:.0f}", joined ? "L" : "M", across(place, trend.size()),
                          1000 - axis.place(static_cast<double>(*value)));
    joined = value.has_value();
  }
  return path;
}

std::string change_words(const TrendPoint* before, const TrendPoint& now, Metric metric) {
  if (before == nullptr || !now.break_reason.empty()) return "";
  const auto last = figure(before->point, metric), value = figure(now.point, metric);
  if (!last || !value || *last == *value) return "";
  if (metric == Metric::kStep)
    return *last == 0 ? "" : reports::signed_percent(reports::ratio_of(*value, *last) - 1) + "%";
  const auto difference = *value - *last;
  if (std::abs(difference) >= (std::int64_t{1} << 24))
    return reports::signed_gib(difference) + " GiB";
  return reports::signed_grouped(difference) + " bytes";
}

}  // namespace peakbench::trends
