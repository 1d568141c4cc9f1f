#include "reports/trends/read.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/json.h"
#include "base/nearest.h"
#include "records/verdict.h"
#include "reports/trends/history.h"
#include "reports/trends/schema.h"

namespace peakbench::trends {
// Runs read back: rows, records, parts.

namespace {

using sqlite::Database;
using sqlite::Statement;

constexpr const char* kColumns =
    "SELECT runs.id, added, created, title, suite, status, branch, commit_id, verdict, note, "
    "libtorch, libtorch_git_version, libtorch_cuda, driver, steps, peakbench, schema_version, "
    "cases, ok_cases, length(run_json) + coalesce(length(packed), 0) "
    "FROM runs JOIN records ON records.run = runs.id LEFT JOIN parts ON parts.id = parts_id";

RunRow row_of(const Statement& row) {
  RunRow run;
  run.number = row.integer(0);
  run.added = row.text(1);
  run.created = row.text(2);
  run.title = row.text(3);
  run.suite = row.text(4);
  run.status = row.text(5);
  run.labels = {row.text(6), row.text(7), row.text(8), row.text(9)};
  run.conditions = {row.text(10), row.text(11), row.text(12), row.text(13), row.integer(14)};
  run.peakbench = row.text(15);
  run.schema_version = row.text(16);
  run.cases = row.integer(17);
  run.ok_cases = row.integer(18);
  run.stored_bytes = row.integer(19);
  return run;
}

[[noreturn]] void no_such_run(const std::string& path, std::int64_t number) {
  throw ConfigError(
      fmt::format("{}: no run {}; `peakbench history list` shows those there are", path, number));
}

// What `query` finds of a run, a text and its length, unpacked. Empty where there is none.
std::string stored_text(const std::string& path, const Database& database, std::int64_t number,
                        const std::string& query) {
  Statement row(database, query);
  row.bind_all(number);
  if (!row.next()) no_such_run(path, number);
  if (row.is_null(0)) return "";
  try {
    return unpack(row.blob(0), row.integer(1));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format(
        "{}: run {}: {}. Nothing was changed; `peakbench history export` saves the other runs, "
        "`peakbench history prune --run {}` takes this one out",
        path, number, error.what(), number));
  }
}

constexpr const char* kStoredRecord = "SELECT run_json, run_json_bytes FROM records WHERE run = ?";
constexpr const char* kStoredParts =
    "SELECT packed, bytes FROM records LEFT JOIN parts ON parts.id = parts_id WHERE run = ?";

nlohmann::json parsed(const std::string& path, std::int64_t number, const std::string& text) {
  try {
    return parse_json(text);
  } catch (const RunFileError& error) {
    throw ConfigError(
        fmt::format("{}: run {}: its record is damaged: {}", path, number, error.what()));
  }
}

// Where-clauses and what is bound to them, in the same order.
struct Clauses {
  std::string text;
  std::vector<std::string> values;

  void add(const std::string& clause, const std::string& value) {
    if (value.empty()) return;
    add(clause);
    values.push_back(value);
  }
  void add(const std::string& clause) { text += (text.empty() ? " WHERE " : " AND ") + clause; }
};

Clauses where(const Filter& filter) {
  Clauses conditions;
  conditions.add("branch = ?", filter.branch);
  conditions.add("suite = ?", filter.suite);
  conditions.add("instr(commit_id, ?) = 1", filter.commit);
  conditions.add(
      "EXISTS (SELECT 1 FROM cases JOIN series ON series.id = cases.series "
      "WHERE cases.run = runs.id AND instr(lower(card), lower(?)) > 0)",
      filter.card);
  if (filter.number) conditions.add("runs.id = " + std::to_string(*filter.number));
  if (filter.good) conditions.add("verdict IN ('', 'passed', 'accepted') AND ok_cases > 0");
  return conditions;
}

}  // namespace

std::vector<RunRow> History::runs(const Filter& filter) const {
  return guarded([&] {
    const auto conditions = where(filter);
    Statement rows(database_, kColumns + conditions.text + " ORDER BY runs.id DESC LIMIT " +
                                  std::to_string(filter.limit));
    int place = 0;
    for (const auto& value : conditions.values) rows.bind(place++, value);
    std::vector<RunRow> found;
    while (rows.next()) {
      found.push_back(row_of(rows));
      if (found.size() > 1 && found.back().number >= found[found.size() - 2].number)
        throw sqlite::DatabaseError("the runs are out of order", SQLITE_CORRUPT);
    }
    return found;
  });
}

RunRow History::run(std::int64_t number) const {
  Filter filter;
  filter.number = number;
  const auto found = runs(filter);
  if (found.empty()) no_such_run(path_, number);
  return found.front();
}

std::string History::record_json(std::int64_t number) const {
  database_.begin_work();
  run(number);
  for (const auto what : {Sealed::kRow, Sealed::kRecord}) expect_sound(number, what);
  return guarded([&] { return stored_text(path_, database_, number, kStoredRecord); });
}

records::Run History::record(std::int64_t number) const {
  const auto json = parsed(path_, number, record_json(number));
  try {
    return records::run_from_json(json);
  } catch (const RunFileError& error) {
    throw ConfigError(fmt::format("{}: run {}: {}", path_, number, error.what()));
  }
}

std::vector<analysis::CaseParts> History::parts(std::int64_t number) const {
  database_.begin_work();
  run(number);
  expect_sound(number, Sealed::kParts);
  const auto text = guarded([&] { return stored_text(path_, database_, number, kStoredParts); });
  if (text.empty()) return {};
  try {
    return analysis::parts_from_json(parsed(path_, number, text));
  } catch (const RunFileError& error) {
    throw ConfigError(fmt::format("{}: run {}: {}", path_, number, error.what()));
  }
}

std::vector<std::string> History::branches() const {
  return guarded([&] {
    Statement rows(database_, "SELECT DISTINCT branch FROM runs ORDER BY branch");
    std::vector<std::string> names;
    while (rows.next()) names.push_back(rows.text(0));
    return names;
  });
}

std::string History::default_branch() const {
  return guarded([&] {
    Statement row(database_,
                  "SELECT branch FROM runs ORDER BY branch = 'main' DESC, id DESC LIMIT 1");
    return row.next() ? row.text(0) : std::string();
  });
}

namespace {

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
    rows.bind_all(pattern, card);
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
    rows.bind_all(series, branch, limit);
    std::vector<Point> found;
    while (rows.next()) found.push_back(point_of(rows));
    std::ranges::reverse(found);
    return found;
  });
}

Metric metric_from(const std::string& name) {
  static const std::vector<std::string> names{"allocated", "requested", "reserved", "step"};
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw ConfigError(fmt::format("no metric \"{}\"{}", name, suggestion(name, names)));
  return static_cast<Metric>(found - names.begin());
}

std::optional<std::int64_t> figure(const Point& point, Metric metric) {
  static constexpr std::array kFigures{&Point::allocated_bytes, &Point::requested_bytes,
                                       &Point::reserved_bytes, &Point::step_ns};
  return point.*kFigures.at(static_cast<std::size_t>(metric));
}

std::optional<std::pair<std::int64_t, std::int64_t>> extremes(const std::vector<TrendPoint>& trend,
                                                              Metric metric) {
  std::optional<std::pair<std::int64_t, std::int64_t>> found;
  for (const auto& point : trend)
    if (const auto value = figure(point.point, metric)) {
      const auto [least, most] = found.value_or(std::pair(*value, *value));
      found = {std::min(least, *value), std::max(most, *value)};
    }
  return found;
}

std::string doubt(const Point& point) {
  return point.figures == verdict_word(records::VerdictKind::exact) ? "" : point.figures;
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

}  // namespace peakbench::trends
