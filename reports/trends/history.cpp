#include "reports/trends/history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/database_file.h"
#include "base/errors.h"
#include "reports/trends/schema.h"

namespace peakbench::trends {
namespace {

namespace fs = std::filesystem;
using sqlite::Database;
using sqlite::DatabaseError;
using sqlite::FileLook;
using sqlite::Statement;

constexpr int kLongest = 300'000'000;  // a text of kMostBytes, compressed

constexpr const char* kWayOut =
    "Nothing was changed. `peakbench history export --out saved.jsonl` saves the runs that can "
    "still be read. `peakbench history add saved.jsonl --history NEW` makes a new history from "
    "them. If that fails, use `sqlite3 FILE .recover | sqlite3 NEW`";

bool has_tables(const Database& database) {
  Statement tables(database, "SELECT count(*) FROM sqlite_schema");
  return tables.next() && tables.integer(0) > 0;
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw ConfigError(fmt::format("{}: {}", path, what));
}

[[noreturn]] void not_a_history(const std::string& path) {
  refuse(path,
         "an SQLite file, but not a Peakbench history. Name another with --history or "
         "$PEAKBENCH_HISTORY");
}

void check_version(const std::string& path, std::int64_t version, bool tables) {
  if (version > 0 && version != kHistoryVersion)
    refuse(path, fmt::format("written by {} Peakbench: history version {}, this one has {}. "
                             "Nothing was changed; use that Peakbench, or another --history",
                             version > kHistoryVersion ? "a newer" : "an older", version,
                             kHistoryVersion));
  if (version < 0 || (version == 0 && tables))
    refuse(path, fmt::format("damaged (unknown history version {}). {}", version, kWayOut));
}

void check_tables(const std::string& path, const Database& database) {
  if (application_of(database) != kApplicationId) not_a_history(path);
  if (const auto problem = sqlite::any_not_plain(database, table_names()); !problem.empty())
    refuse(path, fmt::format("not as Peakbench writes a history: {}. Nothing in it was run or "
                             "changed; name another with --history",
                             problem));
}

void expect_folder(const std::string& path) {
  std::error_code ignored;
  const auto folder = fs::absolute(path, ignored).parent_path();
  if (!fs::is_directory(folder, ignored))
    refuse(path, fmt::format("the folder {} does not exist; make it first", folder.string()));
}

// What SQLite must not even open: it waits for pipes, reads devices, and rolls back what another
// program has left beside its file.
void check_file(const std::string& path, bool may_be_missing) {
  const auto look = sqlite::look_at(path);
  using Kind = FileLook::Kind;
  switch (look.kind) {
    case Kind::kMissing:
      if (may_be_missing) return expect_folder(path);
      refuse(path, fmt::format("there is no history here. `peakbench history add RUN --history {}` "
                               "makes one; --history or $PEAKBENCH_HISTORY name another",
                               path));
    case Kind::kFolder:
      refuse(path, "a folder; a history is a file");
    case Kind::kSpecial:
      refuse(path, fmt::format("{}; a history is a file", look.what));
    case Kind::kUnreadable:
      refuse(path, fmt::format("cannot be opened: {}. Nothing was changed; name another with "
                               "--history",
                               look.what));
    case Kind::kEmpty:
      return;
    case Kind::kNotSqlite:
      if (look.journal.empty())
        refuse(path, "not an SQLite file. Nothing was changed; name a history with --history");
      return;  // a writer was killed in the middle of the first page
    case Kind::kDatabase:
      // A new file is blank for a moment, and stays so when its first writer is killed then.
      if (look.application_id != kApplicationId && !(look.application_id == 0 && look.blank))
        not_a_history(path);
      if (look.write_ahead_log)
        refuse(path, fmt::format("kept with a write-ahead log, which a history never is: another "
                                 "program changed that. Nothing was changed; `sqlite3 {} 'PRAGMA "
                                 "journal_mode = DELETE'` changes it back",
                                 path));
  }
}

int refusal(const fs::path& place, int flags) {
  const int descriptor = open(place.c_str(), flags | O_WRONLY | O_CLOEXEC | O_NONBLOCK, 0600);
  if (descriptor < 0) return errno;
  close(descriptor);
  return 0;
}

// The system's reason why the file, or one beside it, cannot be written; 0: none. SQLite forgets
// it: what it cannot open for writing it tries to open for reading.
int refused_with(const std::string& path) {
  std::error_code ignored;
  const auto file = fs::weakly_canonical(path, ignored);
  if (const int error = refusal(file, 0); error != 0 && error != ENOENT) return error;
  const auto folder = file.parent_path();
  const int error = refusal(folder, O_TMPFILE);
  const bool has_nameless = error != EOPNOTSUPP && error != EISDIR;
  if (has_nameless) return error;
  return faccessat(AT_FDCWD, folder.c_str(), W_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// False where the file is empty.
bool is_filled(const std::string& path, Database& database) {
  database.execute("BEGIN");
  const bool tables = has_tables(database);
  const auto version = version_of(database);
  if (tables) check_tables(path, database);
  check_version(path, version, tables);
  database.execute("COMMIT");
  return tables;
}

// Most openings find a file that is filled, and take no lock that others would wait for.
void fill(const std::string& path, Database& database) {
  if (is_filled(path, database)) return;
  database.execute("PRAGMA auto_vacuum = INCREMENTAL");  // what prune frees goes back
  Transaction transaction(database);
  if (!has_tables(database)) make_tables(database);  // another may have been faster
  transaction.commit();
}

Database opened(Database database, int wait_ms) {
  database.wait_for_locks(wait_ms);
  database.limit_length(kLongest);
  return database;
}

}  // namespace

[[noreturn]] void explain(const std::string& path, const DatabaseError& error) {
  switch (error.code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      refuse(path,
             "another program is writing to it and did not end in time. Nothing was changed; try "
             "again, or wait longer (--wait SECONDS)");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      if (const int reason = is_host_error(error.system) ? error.system : refused_with(path);
          reason != 0)
        refuse(path,
               fmt::format("cannot be written: {}. Nothing was changed", host_error_text(reason)));
      refuse(path,
             "cannot be written: the disk refused it for a moment (full, a quota, or failing), or "
             "its path is too long for SQLite. Nothing was changed; do the same again, or name "
             "another with --history");
    case SQLITE_NOTADB:
      refuse(path, "not an SQLite file. Nothing was changed; name a history with --history");
    case SQLITE_CORRUPT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
      refuse(path, fmt::format("damaged ({}). {}", error.what(), kWayOut));
    case SQLITE_NOMEM:
      refuse(path, "there is not enough memory for what it holds. Nothing was changed");
    case SQLITE_FULL:
      refuse(
          path,
          "the disk is full, or files may not be larger (a quota, ulimit -f). Nothing was changed: "
          "the history is as it was before. Free some space, and repeat the command");
    case SQLITE_IOERR:
      refuse(path,
             fmt::format(
                 "the disk refused ({}; full, a quota, ulimit -f, or failing). Nothing was "
                 "changed: the history is as it was before. Repeat the command when there is space",
                 error.what()));
    default:
      refuse(path, fmt::format("SQLite says: {}. Nothing was changed", error.what()));
  }
}

History History::open_to_write(const std::string& path, int wait_ms) {
  check_file(path, true);
  try {
    auto database = opened(Database::open_read_write(path), wait_ms);
    fill(path, database);
    return {path, std::move(database)};
  } catch (const DatabaseError& error) {
    explain(path, error);
  }
}

History History::open_to_read(const std::string& path, int wait_ms) {
  check_file(path, false);
  try {
    return read(path, wait_ms);
  } catch (const DatabaseError& error) {
    if (error.code != SQLITE_READONLY) explain(path, error);
  }
  // A writer was killed: its journal can only be rolled back by who may write.
  try {
    has_tables(opened(Database::open_read_write(path), wait_ms));
    return read(path, wait_ms);
  } catch (const DatabaseError& error) {
    explain(path, error);
  }
}

History History::read(const std::string& path, int wait_ms) {
  auto database = opened(Database::open_read_only(path), wait_ms);
  if (is_filled(path, database)) return {path, std::move(database)};
  auto empty = Database::copy_of(database, path);
  make_tables(empty);
  return {path, std::move(empty)};
}

}  // namespace peakbench::trends
