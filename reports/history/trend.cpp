#include "reports/history/trend.h"

#include <fmt/format.h>

#include <algorithm>

#include "errors/errors.h"
#include "reports/history/guard.h"
#include "reports/history/series_axes.h"
#include "result/verdict.h"
#include "text/nearest.h"

namespace peakbench::history {
namespace {

using sqlite::Statement;

// A part of an id, or the whole as a pattern where it has * or ?.
std::string pattern_of(const std::string& text) {
  const bool pattern = text.find_first_of("*?") != std::string::npos;
  std::string escaped;
  for (const char c : text) escaped += c == '[' ? std::string("[[]") : std::string(1, c);
  return pattern ? escaped : "*" + escaped + "*";
}

Point point_of(const Statement& row) {
  constexpr int kRun = kAfterFigures;
  Point point;
  point.run = row.integer(kRun);
  point.sound = is_point_sound(row);
  if (!point.sound) return point;
  point.status = row.text(kStatus);
  point.figures = row.text(kFigures);
  point.allocated_bytes = row.maybe_integer(kAllocated);
  point.requested_bytes = row.maybe_integer(kRequested);
  point.reserved_bytes = row.maybe_integer(kReserved);
  point.step_ns = row.maybe_integer(kStepTime);
  point.samples_per_second = row.maybe_number(kSamples);
  point.tokens_per_second = row.maybe_number(kTokens);
  return point;
}

}  // namespace

std::string Series::text(const std::string& axis) const {
  const auto value = axes.find(axis);
  if (value == axes.end()) return "";
  return value->is_string() ? value->get<std::string>() : value->dump();
}

std::vector<Series> History::series(const std::string& text, const std::string& card) const {
  return guarded([&] {
    Statement rows(database_,
                   "SELECT id, case_id, card, device_options, emulated, axes, axes_sum FROM series "
                   "WHERE case_id GLOB ? AND instr(lower(card), lower(?)) > 0 ORDER BY case_id, "
                   "card, device_options");
    const auto pattern = pattern_of(text);
    rows.bind(0, pattern);
    rows.bind(1, card);
    std::vector<Series> found;
    while (rows.next())
      found.push_back({rows.integer(0), rows.text(1), rows.text(2), rows.text(3),
                       axes_from(rows.text(1), rows.text(5), rows.integer(6)),
                       rows.integer(4) != 0});
    return found;
  });
}

std::vector<Point> History::points(std::int64_t series, const std::string& branch,
                                   std::int64_t limit) const {
  return guarded([&] {
    Statement rows(database_, std::string("SELECT ") + kFigureColumns +
                                  ", run FROM cases JOIN runs ON runs.id = cases.run JOIN "
                                  "series ON series.id = cases.series WHERE series = ? AND branch "
                                  "= ? ORDER BY run DESC LIMIT ?");
    rows.bind(0, series);
    rows.bind(1, branch);
    rows.bind(2, limit);
    std::vector<Point> found;
    while (rows.next()) found.push_back(point_of(rows));
    std::reverse(found.begin(), found.end());
    return found;
  });
}

Metric metric_from(const std::string& name) {
  static const std::map<std::string, Metric> metrics{{"allocated", Metric::kAllocated},
                                                     {"requested", Metric::kRequested},
                                                     {"reserved", Metric::kReserved},
                                                     {"step", Metric::kStep}};
  const auto found = metrics.find(name);
  if (found == metrics.end())
    throw ConfigError(
        fmt::format("no metric \"{}\"{}", name,
                    suggestion(name, {"allocated", "requested", "reserved", "step"})));
  return found->second;
}

std::optional<std::int64_t> figure(const Point& point, Metric metric) {
  switch (metric) {
    case Metric::kAllocated:
      return point.allocated_bytes;
    case Metric::kRequested:
      return point.requested_bytes;
    case Metric::kReserved:
      return point.reserved_bytes;
    case Metric::kStep:
      return point.step_ns;
  }
  return std::nullopt;
}

std::string doubt(const Point& point) {
  return point.figures == verdict_word(result::VerdictKind::exact) ? "" : point.figures;
}

void Runs::keep(const RunRow& run) { rows_.try_emplace(run.number, run); }

void Runs::leave_out(std::int64_t number, const std::string& why) {
  rows_.erase(number);
  left_out_.insert(number);
  note(number, why);
}

void Runs::note(std::int64_t number, const std::string& why) { notes_.try_emplace(number, why); }

const RunRow* Runs::find(std::int64_t number) {
  if (left_out_.count(number) != 0) return nullptr;
  auto found = rows_.find(number);
  if (found != rows_.end()) return &found->second;
  if (!history_.has_sound_labels(number)) {
    leave_out(number, "damaged: its labels");
    return nullptr;
  }
  return &rows_.emplace(number, history_.run(number)).first->second;
}

std::vector<TrendPoint> trend_of(const History& history, Runs& runs, const Series& series,
                                 const std::string& branch, std::int64_t limit) {
  std::vector<TrendPoint> trend;
  for (auto& point : history.points(series.id, branch, limit)) {
    TrendPoint next{std::move(point), nullptr, "", false};
    next.run = runs.find(next.point.run);
    if (next.run == nullptr) continue;
    if (!next.point.sound) {
      runs.note(next.point.run, "damaged: its figures");
      continue;
    }
    if (!trend.empty()) {
      const auto& before = *trend.back().run;
      next.break_reason = analysis::difference(before.conditions, next.run->conditions);
      next.clock_back = next.run->created < before.created;
    }
    trend.push_back(std::move(next));
  }
  return trend;
}

}  // namespace peakbench::history
