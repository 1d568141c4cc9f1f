#include "reports/run/view_stacks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/numbers.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/run/group.h"

namespace peakbench::reports {
namespace {

using records::CaseResult;

// What does not train as it promised is no answer, however little it needs.
template <typename Figure>
const CaseResult* least(const Group& group, Figure figure) {
  const CaseResult* best = nullptr;
  for (const CaseResult* result : group.cases) {
    if (!ran(*result) || breaks_promise(*result) || !figure(*result)) continue;
    if (!best || *figure(*result) < *figure(*best)) best = result;
  }
  return best;
}

std::optional<std::int64_t> step_of(const CaseResult& result) {
  return result.throughput ? std::optional(result.throughput->step_ns.median) : std::nullopt;
}

std::optional<std::int64_t> comparable_peak(const CaseResult& result) {
  return replays_steps(result) ? std::nullopt : peak_of(result);
}

std::optional<std::int64_t> peak_of_same_training(const CaseResult& result) {
  return trains_differently(result) ? std::nullopt : comparable_peak(result);
}

// Who, training what, at what cost beside.
template <typename View>
View named(const CaseResult& best, const Group& group) {
  View view;
  view.strategy = printable(row_name(best.spec));
  view.beside = beside_text(best);
  view.is_reference = &best == group.reference;
  view.different = trains_differently(best);
  view.claimed = only_claims_training(best);
  return view;
}

BestView best_view(const CaseResult& lowest, const Group& group) {
  const std::int64_t bytes = *peak_of(lowest);
  auto view = named<BestView>(lowest, group);
  view.gib = gib(bytes);
  view.bytes = grouped(bytes);
  if (lowest.emulation && lowest.emulation->verdict)
    if (const auto verdict = verdict_view(*lowest.emulation->verdict); verdict.doubtful)
      view.doubt = verdict.word;
  if (const auto reserved = lowest.memory->peak_reserved_bytes) view.reserved = gib(*reserved);
  const auto reference = reference_peak(group);
  if (reference.value_or(0) != 0 && &lowest != group.reference)
    view.percent = signed_percent(ratio_of(bytes, *reference) - 1);
  view.time = time_view(lowest, group);
  return view;
}

}  // namespace

const CaseResult* lowest_of(const Group& group) { return least(group, comparable_peak); }

std::optional<BestView> lowest_view(const Group& group) {
  const CaseResult* lowest = lowest_of(group);
  return lowest ? std::optional(best_view(*lowest, group)) : std::nullopt;
}

// Where the reference itself trains another problem, nothing is said of who trains as it does.
std::optional<BestView> lowest_same_view(const Group& group) {
  if (group.reference && trains_differently(*group.reference)) return std::nullopt;
  const CaseResult* same = least(group, peak_of_same_training);
  const bool told = !same || same == lowest_of(group) || same == group.reference;
  return told ? std::nullopt : std::optional(best_view(*same, group));
}

std::optional<FastestView> fastest_view(const Group& group) {
  const CaseResult* fastest = least(group, step_of);
  // Of rounds too few for an interval noise may be all there is: then none is called the fastest.
  if (!fastest || !has_intervals(*fastest, group)) return std::nullopt;
  auto view = named<FastestView>(*fastest, group);
  view.step_ms = milliseconds(fastest->throughput->step_ns.median);
  view.tied = tied_with(*fastest, group);
  view.time = time_view(*fastest, group);
  if (view.time && view.time->noise) view.time.reset();  // then the reference is one of `tied`
  if (view.time) view.percent = view.time->percent;
  return view;
}

std::vector<LeftOutView> left_out_view(const Group& group) {
  std::vector<LeftOutView> list;
  for (const CaseResult* result : group.cases)
    if (ran(*result) && breaks_promise(*result))
      list.push_back({printable(row_name(result->spec)), list.empty()});
  return list;
}

namespace {

using Strategies = std::vector<records::Selection>;

// The group's cases by what they are called: another stack of the same release and build.
class Stacks {
 public:
  explicit Stacks(const Group& group) {
    for (const auto* cases : {&group.added, &group.cases})
      for (const CaseResult* result : *cases) cases_[row_name(result->spec)] = result;
  }

  const CaseResult* find(Strategies strategies, const CaseResult& beside) const {
    records::Setting setting = beside.spec;
    setting.strategies = std::move(strategies);
    if (setting.strategies.empty()) setting.strategies.push_back({"baseline"});
    const auto found = cases_.find(row_name(setting));
    return found == cases_.end() ? nullptr : found->second;
  }

 private:
  std::map<std::string, const CaseResult*> cases_;
};

bool has_peak(const CaseResult* result) { return result && ran(*result) && result->memory; }

std::int64_t peak(const CaseResult& result) { return result.memory->peak_allocated_bytes; }

std::string why_not(const CaseResult* result) {
  return result ? status_label(result->status) : "not run";
}

// One stack: `base` is its baseline with options, or nothing.
struct Split {
  Strategies base, parts;
};

Split split(const CaseResult& stack) {
  Split result;
  for (const records::Selection& strategy : stack.spec.strategies)
    (strategy.id == "baseline" ? result.base : result.parts).push_back(strategy);
  return result;
}

AblationPartView part_view(const Split& split, std::size_t index, const CaseResult* alone,
                           const CaseResult& bare, const CaseResult& stack, const Stacks& stacks) {
  Strategies others = split.base;
  for (std::size_t i = 0; i < split.parts.size(); ++i)
    if (i != index) others.push_back(split.parts[i]);
  const CaseResult* without = stacks.find(others, stack);
  AblationPartView view;
  view.part = printable(selection_text(split.parts[index]));
  view.others = printable(records::stack_text(others));
  if (has_peak(alone))
    view.alone = delta_view(peak(*alone), peak(bare));
  else
    view.alone_missing = why_not(alone);
  if (has_peak(without))
    view.without = delta_view(peak(*without), peak(stack));
  else
    view.without_missing = why_not(without);
  return view;
}

std::optional<AblationView> stack_view(const CaseResult& stack, std::size_t number,
                                       const Stacks& stacks) {
  const Split parts = split(stack);
  const CaseResult* bare = stacks.find(parts.base, stack);
  if (parts.parts.size() < 2 || !has_peak(&stack) || !has_peak(bare)) return std::nullopt;
  std::vector<AblationPartView> rows;
  std::int64_t level = peak(*bare);  // less what the parts save alone
  bool some = false, all_alone = true;
  for (std::size_t i = 0; i < parts.parts.size(); ++i) {
    Strategies one = parts.base;
    one.push_back(parts.parts[i]);
    const CaseResult* alone = stacks.find(one, stack);
    rows.push_back(part_view(parts, i, alone, *bare, stack, stacks));
    some = some || rows.back().alone || rows.back().without;
    all_alone = all_alone && has_peak(alone);
    if (all_alone) level += peak(*alone) - peak(*bare);
  }
  if (!some) return std::nullopt;
  return AblationView{
      .strategy = printable(row_name(stack.spec)),
      .number = std::to_string(number),
      .bare = printable(row_name(bare->spec)),
      .together = delta_view(peak(stack), peak(*bare)),
      .sum = all_alone ? std::optional(delta_view(level, peak(*bare))) : std::nullopt,
      .parts = std::move(rows)};
}

}  // namespace

std::vector<AblationView> ablation_view(const Group& group) {
  const Stacks stacks(group);
  std::vector<AblationView> list;
  for (std::size_t i = 0; i < group.cases.size(); ++i)
    if (auto view = stack_view(*group.cases[i], i + 1, stacks)) list.push_back(std::move(*view));
  return list;
}

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

bool all_have_tokens(const Group& group) {
  return std::ranges::all_of(group.cases, [](const CaseResult* c) {
    return !c->throughput || c->throughput->tokens_per_second;
  });
}

std::vector<Point> points_of(const Group& group, bool tokens) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < group.cases.size(); ++i) {
    const CaseResult& result = *group.cases[i];
    if (!ran(result) || !result.memory || !result.throughput) continue;
    const std::int64_t bytes = result.memory->peak_allocated_bytes;
    const double rate = tokens ? result.throughput->tokens_per_second.value_or(0)
                               : result.throughput->samples_per_second;
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
  return point.counts &&
         std::ranges::none_of(points, [&](const Point& other) { return beats(other, point); });
}

// A drawing's key has room for some 36 columns.
std::string short_name(const CaseResult& result, const std::string& mark) {
  const std::string name = printable(row_name(result.spec));
  if (mark.empty()) return fit_middle(name, 30);
  return fit_middle(name, 33 - display_width(mark)) + " (" + mark + ")";
}

// For each throughput, the least memory that reaches it: a staircase through the points that none
// beats.
std::vector<CornerView> front_view(std::vector<Point> front, const Range& x, const Range& y) {
  std::ranges::sort(front, [](const Point& a, const Point& b) { return a.rate < b.rate; });
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
    const CaseResult& result = *group.cases[point.index];
    const bool best = on_front(point, points);
    const std::string mark = mark_of(result);
    if (best) front.push_back(point);
    view.has_claimed = view.has_claimed || mark == "claimed";
    view.has_broken = view.has_broken || !point.counts;
    view.points.push_back({.short_name = short_name(result, mark),
                           .number = std::to_string(point.index + 1),
                           .strategy = printable(row_name(result.spec)),
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
