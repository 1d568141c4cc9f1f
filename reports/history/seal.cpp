#include "reports/history/seal.h"

#include <optional>
#include <vector>

#include "reports/history/packed.h"
#include "result/errors.h"

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
constexpr const char* kFigures =
    "SELECT case_id, card, device_options, model, strategy, device, dtype, batch_size, "
    "sequence_length, emulated, status, peak_allocated_bytes, peak_requested_bytes, "
    "peak_reserved_bytes, peak_phase, step_ns, samples_per_second, tokens_per_second "
    "FROM cases JOIN series ON series.id = cases.series WHERE run = ? ORDER BY cases.series";
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
                std::int64_t figures, const std::string& since) {
  Statement insert(database, "INSERT INTO seals VALUES (?, ?, ?, ?, ?)");
  insert.bind(0, number);
  insert.bind(1, row);
  insert.bind(2, record);
  insert.bind(3, figures);
  insert.bind(4, since);
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

const char* name_of(Part part) {
  switch (part) {
    case Part::kRow:
      return "its labels";
    case Part::kRecord:
      return "its record";
    case Part::kFigures:
      return "its figures";
    case Part::kParts:
      return "its parts";
  }
  return "";
}

void seal(Database& database, std::int64_t number, const std::string& since) {
  write_seal(database, number, sum_of(database, number, kRow), sum_of(database, number, kRecord),
             sum_of(database, number, kFigures), since);
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
    write_seal(database, number, sum_or_damaged(number, kRow),
               filed ? sum_or_damaged(number, kRecord) : kDamaged, sum_or_damaged(number, kFigures),
               since);
  }
}

void note_unsealed(Database& database) {
  Statement insert(database, "INSERT INTO seals SELECT id, ?, ?, ?, '' FROM runs");
  for (int column = 0; column < 3; ++column) insert.bind(column, kNone);
  insert.run();
}

bool is_sound(const Database& database, std::int64_t number, Part part) {
  const auto answer = attempt([&] {
    if (part == Part::kParts) return are_parts_sound(database, number);
    Statement seal(database, "SELECT row, record, figures FROM seals WHERE run = ?");
    seal.bind(0, number);
    if (!seal.next()) return false;
    if (seal.integer(0) == kNone)
      return part == Part::kRecord
                 ? is_record_as_filed(database, number)
                 : sum_of(database, number, part == Part::kRow ? kRow : kFigures) >= 0;
    if (part == Part::kRow) return seal.integer(0) == sum_of(database, number, kRow);
    if (part == Part::kRecord) return seal.integer(1) == sum_of(database, number, kRecord);
    return seal.integer(2) == sum_of(database, number, kFigures);
  });
  return answer.value_or(false);
}

}  // namespace peakbench::history
