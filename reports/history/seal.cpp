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

// No checksum is negative.
constexpr std::int64_t kDamaged = -1, kNone = -2;

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

// As many as the run's row says, each with its sum where `sealed`.
bool are_figures_sound(const Database& database, std::int64_t number, bool sealed) {
  Statement run(database, "SELECT cases FROM runs WHERE id = ?");
  run.bind(0, number);
  if (!run.next()) return false;
  auto missing = run.integer(0);
  Statement rows(database, figures_query());
  rows.bind(0, number);
  for (; rows.next(); --missing)
    if (!is_point_sound(rows) || rows.is_null(kSum) == sealed) return false;
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
  const auto sum = checksum(unpack(row.blob(1), row.integer(2)));
  return row.integer(3) == 0 || sum == row.integer(3);  // 0: from versions without
}

// What a run that was filed without a seal says of itself.
bool is_record_as_filed(const Database& database, std::int64_t number) {
  Statement row(database,
                "SELECT run_json, run_json_bytes, checksum FROM records JOIN runs ON runs.id = run "
                "WHERE run = ?");
  row.bind(0, number);
  return row.next() && checksum(unpack(row.blob(0), row.integer(1))) == row.integer(2);
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

void write_seal(Database& database, std::int64_t number, std::int64_t row, std::int64_t record,
                const std::string& since) {
  Statement insert(database, "INSERT INTO seals VALUES (?, ?, ?, ?)");
  insert.bind(0, number);
  insert.bind(1, row);
  insert.bind(2, record);
  insert.bind(3, since);
  insert.run();
}

// Files of versions 1 and 2 have parts without a checksum.
void sum_parts(Database& database) {
  std::vector<std::int64_t> numbers;
  {
    Statement rows(database, "SELECT id FROM parts WHERE checksum = 0");
    while (rows.next()) numbers.push_back(rows.integer(0));
  }
  Statement read(database, "SELECT packed, bytes FROM parts WHERE id = ?");
  Statement write(database, "UPDATE parts SET checksum = ? WHERE id = ?");
  for (const auto number : numbers) {
    read.bind(0, number);
    read.next();
    const auto sum = attempt([&] { return checksum(unpack(read.blob(0), read.integer(1))); });
    read.reset();
    write.bind(0, sum.value_or(kDamaged));
    write.bind(1, number);
    write.run();
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
  return row.is_null(kSum) || point_sum(row) == row.integer(kSum);
}

void seal(Database& database, std::int64_t number, const std::string& since) {
  seal_figures(database, number);
  write_seal(database, number, sum_of(database, number, kRow), sum_of(database, number, kRecord),
             since);
}

void seal_row(Database& database, std::int64_t number) {
  Statement update(database, "UPDATE seals SET row = ? WHERE run = ?");
  update.bind(0, sum_of(database, number, kRow));
  update.bind(1, number);
  update.run();
}

void seal_all(Database& database, const std::string& since) {
  sum_parts(database);
  std::vector<std::int64_t> numbers;
  {
    Statement rows(database, "SELECT id FROM runs ORDER BY id");
    while (rows.next()) numbers.push_back(rows.integer(0));
  }
  const auto sum_or_damaged = [&](std::int64_t number, const char* query) {
    return attempt([&] { return sum_of(database, number, query); }).value_or(kDamaged);
  };
  for (const auto number : numbers) {
    const bool filed =
        attempt([&] { return is_record_as_filed(database, number); }).value_or(false);
    attempt([&] {
      seal_figures(database, number);
      return true;
    });
    write_seal(database, number, sum_or_damaged(number, kRow),
               filed ? sum_or_damaged(number, kRecord) : kDamaged, since);
  }
}

void note_unsealed(Database& database) {
  Statement insert(database, "INSERT INTO seals SELECT id, ?, ?, '' FROM runs");
  for (int column = 0; column < 2; ++column) insert.bind(column, kNone);
  insert.run();
}

bool is_sound(const Database& database, std::int64_t number, Sealed what) {
  const auto answer = attempt([&] {
    if (what == Sealed::kParts) return are_parts_sound(database, number);
    Statement seal(database, "SELECT row, record FROM seals WHERE run = ?");
    seal.bind(0, number);
    if (!seal.next()) return false;
    const bool sealed = seal.integer(0) != kNone;
    if (what == Sealed::kFigures) return are_figures_sound(database, number, sealed);
    const auto* query = what == Sealed::kRow ? kRow : kRecord;
    const auto sum = sum_of(database, number, query);
    if (sealed) return seal.integer(what == Sealed::kRow ? 0 : 1) == sum;
    return what == Sealed::kRow || is_record_as_filed(database, number);
  });
  return answer.value_or(false);
}

}  // namespace peakbench::history
