#include "reports/report/view_pareto.h"

#include <algorithm>
#include <cmath>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "units/bytes.h"

namespace peakbench::reports {
namespace {

constexpr std::size_t kKeyLines = 12;

struct Point {
  std::size_t index = 0;
  double rate = 0, gib = 0;
  std::int64_t bytes = 0;
  bool counts = true;  // not what does not train as it promised
};

struct Range {
  double low = 0, high = 1;
  double place(double value) const { return (value - low) / (high - low); }
};

// A sixth of the spread around, never below zero; some width even when all values are one.
Range padded(double low, double high) {
  const double room = std::max((high - low) / 6, high / 20);
  return {std::max(0.0, low - room), high + room};
}

double rate_of_case(const result::Throughput& throughput, bool tokens) {
  return tokens ? throughput.tokens_per_second.value_or(0) : throughput.samples_per_second;
}

bool all_have_tokens(const Group& group) {
  return std::all_of(group.cases.begin(), group.cases.end(), [](const result::CaseResult* c) {
    return !c->throughput || c->throughput->tokens_per_second;
  });
}

std::vector<Point> points_of(const Group& group, bool tokens) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < group.cases.size(); ++i) {
    const result::CaseResult& result = *group.cases[i];
    if (!ran(result) || !result.memory || !result.throughput) continue;
    const std::int64_t bytes = result.memory->peak_allocated_bytes;
    const double rate = rate_of_case(*result.throughput, tokens);
    if (!std::isfinite(rate)) continue;
    points.push_back({i, rate, static_cast<double>(bytes) / kGiB, bytes,
                      !breaks_promise(result) && !replays_steps(result)});
  }
  return points;
}

bool beats(const Point& a, const Point& b) {
  return a.counts && a.rate >= b.rate && a.bytes <= b.bytes &&
         (a.rate > b.rate || a.bytes < b.bytes);
}

bool on_front(const Point& point, const std::vector<Point>& points) {
  return point.counts && std::none_of(points.begin(), points.end(),
                                      [&](const Point& other) { return beats(other, point); });
}

// A drawing's key has room for some 36 columns.
std::string short_name(const result::CaseResult& result, const std::string& mark) {
  const std::string name = printable(row_name(result.spec));
  if (mark.empty()) return fit_middle(name, 30);
  return fit_middle(name, 33 - display_width(mark)) + " (" + mark + ")";
}

// For each throughput, the least memory that reaches it: a staircase through the points that none
// beats.
std::vector<CornerView> front_view(std::vector<Point> front, const Range& x, const Range& y) {
  std::sort(front.begin(), front.end(),
            [](const Point& a, const Point& b) { return a.rate < b.rate; });
  std::vector<CornerView> corners;
  for (std::size_t i = 0; i < front.size(); ++i) {
    const std::string height = fraction(y.place(front[i].gib));
    if (i > 0) corners.push_back({fraction(x.place(front[i - 1].rate)), height});
    corners.push_back({fraction(x.place(front[i].rate)), height});
  }
  return corners;
}

}  // namespace

std::optional<ParetoView> pareto_view(const Group& group) {
  const bool tokens = all_have_tokens(group);
  const std::vector<Point> points = points_of(group, tokens);
  if (points.size() < 2) return std::nullopt;
  const auto [slowest, fastest] = std::minmax_element(
      points.begin(), points.end(), [](auto& a, auto& b) { return a.rate < b.rate; });
  const auto [smallest, largest] = std::minmax_element(
      points.begin(), points.end(), [](auto& a, auto& b) { return a.gib < b.gib; });
  const Range x = padded(slowest->rate, fastest->rate), y = padded(smallest->gib, largest->gib);
  ParetoView view;
  std::vector<Point> front;
  for (const Point& point : points) {
    const result::CaseResult& result = *group.cases[point.index];
    const bool best = on_front(point, points);
    const std::string mark = mark_of(result);
    if (best) front.push_back(point);
    view.has_claimed = view.has_claimed || mark == "claimed";
    view.has_broken = view.has_broken || !point.counts;
    view.points.push_back({.number = std::to_string(point.index + 1),
                           .strategy = printable(row_name(result.spec)),
                           .short_name = short_name(result, mark),
                           .mark = mark,
                           .beside = beside_text(result),
                           .position = std::to_string(view.points.size()),
                           .x = fraction(x.place(point.rate)),
                           .y = fraction(y.place(point.gib)),
                           .gib = gib(point.bytes),
                           .rate = decimal(point.rate, 4),
                           .on_front = best,
                           .is_reference = &result == group.reference});
  }
  const std::size_t beyond = points.size() > kKeyLines ? points.size() - kKeyLines : 0;
  view.front = front_view(std::move(front), x, y);
  view.x_ticks = ticks_view(x.low, x.high, 5);
  view.y_ticks = ticks_view(y.low, y.high, 5);
  view.unit = tokens ? "tokens/s" : "samples/s";
  view.extra_points = std::to_string(beyond);
  return view;
}

}  // namespace peakbench::reports
