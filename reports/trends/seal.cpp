#include "reports/trends/seal.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <vector>

#include "base/errors.h"
#include "reports/trends/history.h"
#include "reports/trends/schema.h"

namespace peakbench::trends {
namespace {

using sqlite::Database;
using sqlite::DatabaseError;
using sqlite::Statement;

constexpr const char* kRow =
    "SELECT id, added, created, title, suite, status, branch, commit_id, libtorch, "
    "libtorch_git_version, libtorch_cuda, driver, steps, peakbench, schema_version, cases, "
    "ok_cases, checksum, verdict, note FROM runs WHERE id = ?";
constexpr const char* kRecord =
    "SELECT run_json, run_json_bytes, parts_id FROM records WHERE run = ?";
constexpr const char* kParts =
    "SELECT parts_id, packed, bytes, checksum FROM records LEFT JOIN parts ON parts.id = parts_id "
    "WHERE run = ?";

// Of all rows that the query finds of a run; of none too.
std::int64_t sum_of(const Database& database, std::int64_t number, const char* query) {
  Statement rows(database, query);
  rows.bind_all(number);
  std::string bytes;
  while (rows.next()) bytes += rows.row_bytes();
  return checksum(bytes);
}

std::int64_t point_sum(const Statement& row) {
  return checksum(row.row_bytes(kSum) + row.text(kFigures));
}

std::string figures_query() {
  return std::string("SELECT ") + kFigureColumns +
         ", series FROM cases JOIN series ON series.id = cases.series WHERE run = ?";
}

// As many as the run's row says, each with its sum.
bool are_figures_sound(const Database& database, std::int64_t number) {
  Statement run(database, "SELECT cases FROM runs WHERE id = ?");
  run.bind_all(number);
  if (!run.next()) return false;
  auto missing = run.integer(0);
  Statement rows(database, figures_query());
  rows.bind_all(number);
  for (; rows.next(); --missing)
    if (!is_point_sound(rows)) return false;
  return missing == 0;
}

void seal_figures(Database& database, std::int64_t number) {
  constexpr int kSeries = kAfterFigures;
  std::vector<std::pair<std::int64_t, std::int64_t>> sums;
  {
    Statement rows(database, figures_query());
    rows.bind_all(number);
    while (rows.next()) sums.emplace_back(rows.integer(kSeries), point_sum(rows));
  }
  Statement update(database, "UPDATE cases SET sum = ? WHERE series = ? AND run = ?");
  for (const auto& [series, sum] : sums) update.run(sum, series, number);
}

bool are_parts_sound(const Database& database, std::int64_t number) {
  Statement row(database, kParts);
  row.bind_all(number);
  if (!row.next()) return false;
  if (row.is_null(0)) return true;  // it has none
  return checksum(unpack(row.blob(1), row.integer(2))) == row.integer(3);
}

const char* name_of(Sealed what) {
  static constexpr std::array kNames{"its labels", "its record", "its figures", "its parts"};
  return kNames.at(static_cast<std::size_t>(what));
}

}  // namespace

bool is_point_sound(const Statement& row) {
  if (axes_sum(row.text(kCaseId), row.text(kAxes)) != row.integer(kAxesSum)) return false;
  return !row.is_null(kSum) && point_sum(row) == row.integer(kSum);
}

void seal(Database& database, std::int64_t number) {
  seal_figures(database, number);
  Statement insert(database, "INSERT INTO seals VALUES (?, ?, ?)");
  insert.run(number, sum_of(database, number, kRow), sum_of(database, number, kRecord));
}

void seal_row(Database& database, std::int64_t number) {
  Statement update(database, "UPDATE seals SET row = ? WHERE run = ?");
  update.run(sum_of(database, number, kRow), number);
}

bool is_sound(const Database& database, std::int64_t number, Sealed what) {
  try {
    if (what == Sealed::kParts) return are_parts_sound(database, number);
    Statement seal(database, "SELECT row, record FROM seals WHERE run = ?");
    seal.bind_all(number);
    if (!seal.next()) return false;
    if (what == Sealed::kFigures) return are_figures_sound(database, number);
    const bool is_row = what == Sealed::kRow;
    return seal.integer(is_row ? 0 : 1) == sum_of(database, number, is_row ? kRow : kRecord);
  } catch (const DatabaseError&) {
    return false;  // even reading fails
  } catch (const ConfigError&) {
    return false;
  }
}

// Whether what a history holds is as it was filed.

namespace {

// As many as can be read before a damaged page.
void gather(const Database& database, const char* query, std::set<std::int64_t>& numbers) {
  try {
    Statement rows(database, query);
    while (rows.next()) numbers.insert(rows.integer(0));
  } catch (const DatabaseError&) {
    // the others are found from the other side, or in the other tables
  }
}

void look_at_structure(const Database& database, std::vector<std::string>& found) {
  try {
    Statement check(database, "PRAGMA integrity_check(20)");
    while (check.next())
      if (const auto line = check.text(0); line != "ok") found.push_back(line);
  } catch (const DatabaseError& error) {
    found.emplace_back(error.what());
  }
}

}  // namespace

std::vector<std::int64_t> History::numbers() const {
  std::set<std::int64_t> numbers;
  for (const char* table :
       {"id FROM runs ORDER BY id", "run FROM seals ORDER BY run", "run FROM records ORDER BY run"})
    for (const char* direction : {" ASC", " DESC"})
      gather(database_, (std::string("SELECT ") + table + direction).c_str(), numbers);
  return {numbers.begin(), numbers.end()};
}

void History::expect_sound(std::int64_t number, Sealed what) const {
  if (is_sound(database_, number, what)) return;
  throw ConfigError(
      fmt::format("{}: run {} is damaged: {} {} not as filed. Nothing was changed; `peakbench "
                  "history export` saves the other runs, `peakbench history prune --run {}` takes "
                  "this one out",
                  path_, number, name_of(what), what == Sealed::kRecord ? "is" : "are", number));
}

bool History::has_sound_labels(std::int64_t number) const {
  return is_sound(database_, number, Sealed::kRow);
}

std::vector<std::string> History::problems() const {
  std::vector<std::string> found;
  for (const auto number : numbers()) {
    database_.begin_work();
    std::string damaged;
    for (const auto what : {Sealed::kRow, Sealed::kRecord, Sealed::kFigures, Sealed::kParts})
      if (!is_sound(database_, number, what))
        damaged += (damaged.empty() ? "" : ", ") + std::string(name_of(what));
    if (!damaged.empty()) found.push_back(fmt::format("run {} ({})", number, damaged));
  }
  database_.begin_work();
  look_at_structure(database_, found);
  return found;
}

}  // namespace peakbench::trends
