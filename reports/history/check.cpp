// Whether what a history holds is as it was filed.
#include <fmt/format.h>

#include <set>

#include "errors/errors.h"
#include "reports/history/guard.h"

namespace peakbench::history {
namespace {

using sqlite::Database;
using sqlite::DatabaseError;
using sqlite::Statement;

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

}  // namespace peakbench::history
