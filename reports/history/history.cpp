#include "reports/history/history.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>

#include "reports/history/guard.h"
#include "reports/history/schema.h"
#include "result/errors.h"

namespace peakbench::history {
namespace {

namespace fs = std::filesystem;
using sqlite::Database;
using sqlite::DatabaseError;
using sqlite::Statement;

constexpr const char* kWayOut =
    "Nothing was changed. `peakbench history export --out saved.jsonl` saves the runs that can "
    "still be read, `peakbench history add saved.jsonl --history NEW` makes a new history of them; "
    "where not even that works, `sqlite3 FILE .recover | sqlite3 NEW` does";

bool has_tables(const Database& database) {
  Statement tables(database, "SELECT count(*) FROM sqlite_master");
  return tables.next() && tables.integer(0) > 0;
}

void check_kind(const std::string& path, const Database& database) {
  if (application_of(database) == kApplicationId) return;
  throw ConfigError(
      fmt::format("{}: an SQLite file, but not a Peakbench history. Name another with --history or "
                  "$PEAKBENCH_HISTORY",
                  path));
}

void check_not_newer(const std::string& path, const Database& database) {
  const auto version = version_of(database);
  if (version > kHistoryVersion)
    throw ConfigError(
        fmt::format("{}: written by a newer Peakbench: history version {}, this one knows up to "
                    "{}. Nothing was changed; use the newer Peakbench, or another --history",
                    path, version, kHistoryVersion));
}

void check_path(const std::string& path, bool may_be_missing) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw ConfigError(fmt::format("{}: a folder; a history is a file", path));
  if (fs::exists(path, ignored)) return;
  if (!may_be_missing)
    throw ConfigError(fmt::format(
        "{}: there is no history here. `peakbench history add RUN --history {}` makes one; "
        "--history or $PEAKBENCH_HISTORY name another",
        path, path));
  const auto folder = fs::absolute(path, ignored).parent_path();
  if (!fs::is_directory(folder, ignored))
    throw ConfigError(
        fmt::format("{}: the folder {} does not exist; make it first", path, folder.string()));
}

// True where the file is of this version, false where it is empty or older.
bool is_current(const std::string& path, Database& database) {
  database.execute("BEGIN");
  const bool tables = has_tables(database);
  if (tables) check_kind(path, database);
  check_not_newer(path, database);
  const bool current = tables && version_of(database) == kHistoryVersion;
  database.execute("COMMIT");
  return current;
}

// Most openings find the version as it should be, and take no lock that others would wait for.
void bring_up(const std::string& path, Database& database) {
  if (is_current(path, database)) return;
  // For a new file only: what prune frees goes back to the file system.
  if (!has_tables(database)) database.execute("PRAGMA auto_vacuum = INCREMENTAL");
  Transaction transaction(database);
  check_not_newer(path, database);
  if (version_of(database) < kHistoryVersion) migrate(database);
  transaction.commit();
}

}  // namespace

[[noreturn]] void explain(const std::string& path, const DatabaseError& error) {
  const auto say = [&](const std::string& what) {
    throw ConfigError(fmt::format("{}: {}", path, what));
  };
  switch (error.code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      say("another program is writing to it and did not end in time. Nothing was changed; try "
          "again, or wait longer (--wait SECONDS)");
      break;
    case SQLITE_READONLY:
      say("cannot be written: the file, its folder or its file system is read-only. Nothing was "
          "changed; copy it to a place that you may write to, or name another with --history");
      break;
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      say("cannot be opened: no permission, or its folder cannot be written. Nothing was changed; "
          "name another with --history");
      break;
    case SQLITE_NOTADB:
      say("not an SQLite file. Nothing was changed; name a history with --history");
      break;
    case SQLITE_CORRUPT:
      say(fmt::format("damaged ({}). {}", error.what(), kWayOut));
      break;
    case SQLITE_FULL:
      say("the disk is full, or files may not be larger (a quota, ulimit -f). Nothing was changed: "
          "the history is as it was before; make room and do the same again");
      break;
    case SQLITE_IOERR:
      say(
          fmt::format("the disk refused ({}; full, a quota, ulimit -f, or failing). Nothing was "
                      "changed: the history is as it was before; do the same again when there is "
                      "room",
                      error.what()));
      break;
    default:
      say(fmt::format("SQLite says: {}. Nothing was changed", error.what()));
  }
  throw error;  // not reached: say() throws
}

const std::vector<std::string>& known_verdicts() {
  static const std::vector<std::string> verdicts{"passed", "regressed", "failed", "unknown",
                                                 "accepted"};
  return verdicts;
}

History History::open_to_write(const std::string& path, int wait_ms) {
  check_path(path, true);
  try {
    auto database = Database::open_read_write(path);
    database.wait_for_locks(wait_ms);
    bring_up(path, database);
    return {path, std::move(database)};
  } catch (const DatabaseError& error) {
    explain(path, error);
  }
}

History History::open_to_read(const std::string& path, int wait_ms) {
  check_path(path, false);
  try {
    auto database = Database::open_read_only(path);
    database.wait_for_locks(wait_ms);
    if (is_current(path, database)) return {path, std::move(database)};
  } catch (const DatabaseError& error) {
    // A writer was killed: its journal can only be rolled back by who may write.
    if (error.code != SQLITE_READONLY) explain(path, error);
  }
  return open_to_write(path, wait_ms);  // or an older version
}

std::vector<std::string> History::problems() const {
  return guarded([&] {
    std::vector<std::string> found;
    Statement check(database_, "PRAGMA integrity_check(20)");
    while (check.next())
      if (const auto line = check.text(0); line != "ok") found.push_back(line);
    return found;
  });
}

}  // namespace peakbench::history
