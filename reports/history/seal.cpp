#include "reports/history/seal.h"

#include <optional>
#include <vector>

#include "errors/errors.h"
#include "reports/history/packed.h"
#include "reports/history/series_axes.h"

namespace peakbench::history {
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
  rows.bind(0, number);
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
  run.bind(0, number);
  if (!run.next()) return false;
  auto missing = run.integer(0);
  Statement rows(database, figures_query());
  rows.bind(0, number);
  for (; rows.next(); --missing)
    if (!is_point_sound(rows)) return false;
  return missing == 0;
}

void seal_figures(Database& database, std::int64_t number) {
  constexpr int kSeries = kAfterFigures;
  std::vector<std::pair<std::int64_t, std::int64_t>> sums;
  {
    Statement rows(database, figures_query());
    rows.bind(0, number);
    while (rows.next()) sums.emplace_back(rows.integer(kSeries), point_sum(rows));
  }
  Statement update(database, "UPDATE cases SET sum = ? WHERE series = ? AND run = ?");
  for (const auto& [series, sum] : sums) {
    update.bind(0, sum);
    update.bind(1, series);
    update.bind(2, number);
    update.run();
  }
}

bool are_parts_sound(const Database& database, std::int64_t number) {
  Statement row(database, kParts);
  row.bind(0, number);
  if (!row.next()) return false;
  if (row.is_null(0)) return true;  // it has none
  return checksum(unpack(row.blob(1), row.integer(2))) == row.integer(3);
}

// nullopt where even reading fails.
template <class Answer>
auto attempt(Answer answer) -> std::optional<decltype(answer())> {
  try {
    return answer();
  } catch (const DatabaseError&) {
    return std::nullopt;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace

const char* name_of(Sealed what) {
  switch (what) {
    case Sealed::kRow:
      return "its labels";
    case Sealed::kRecord:
      return "its record";
    case Sealed::kFigures:
      return "its figures";
    case Sealed::kParts:
      return "its parts";
  }
  return "";
}

bool is_point_sound(const Statement& row) {
  if (axes_sum(row.text(kCaseId), row.text(kAxes)) != row.integer(kAxesSum)) return false;
  return !row.is_null(kSum) && point_sum(row) == row.integer(kSum);
}

void seal(Database& database, std::int64_t number) {
  seal_figures(database, number);
  Statement insert(database, "INSERT INTO seals VALUES (?, ?, ?)");
  insert.bind(0, number);
  insert.bind(1, sum_of(database, number, kRow));
  insert.bind(2, sum_of(database, number, kRecord));
  insert.run();
}

void seal_row(Database& database, std::int64_t number) {
  Statement update(database, "UPDATE seals SET row = ? WHERE run = ?");
  update.bind(0, sum_of(database, number, kRow));
  update.bind(1, number);
  update.run();
}

bool is_sound(const Database& database, std::int64_t number, Sealed what) {
  const auto answer = attempt([&] {
    if (what == Sealed::kParts) return are_parts_sound(database, number);
    Statement seal(database, "SELECT row, record FROM seals WHERE run = ?");
    seal.bind(0, number);
    if (!seal.next()) return false;
    if (what == Sealed::kFigures) return are_figures_sound(database, number);
    const bool is_row = what == Sealed::kRow;
    return seal.integer(is_row ? 0 : 1) == sum_of(database, number, is_row ? kRow : kRecord);
  });
  return answer.value_or(false);
}

}  // namespace peakbench::history
