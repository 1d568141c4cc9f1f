#include "trace/open_trace.h"

#include <fmt/format.h>

#include "errors/errors.h"
#include "sqlite/file.h"
#include "sqlite/plain.h"
#include "trace/trace_file.h"

namespace peakbench::trace {
namespace {

using sqlite::Database;
using sqlite::FileLook;
using sqlite::Statement;
using sqlite::Wanted;

constexpr const char* kExpected = "expected the trace.sqlite of a case";

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw ConfigError(fmt::format("{}: {}", path, what));
}

void check_kind(const std::string& path, const FileLook& look) {
  switch (look.kind) {
    case FileLook::Kind::kMissing:
      refuse(path, fmt::format("no such file; {}", kExpected));
    case FileLook::Kind::kFolder:
      refuse(path, fmt::format("a folder; {}", kExpected));
    case FileLook::Kind::kSpecial:
      refuse(path, fmt::format("{}, not a file; {}", look.what, kExpected));
    case FileLook::Kind::kUnreadable:
      refuse(path, fmt::format("cannot be opened for reading: {}", look.what));
    case FileLook::Kind::kEmpty:
    case FileLook::Kind::kNotSqlite:
      refuse(path, fmt::format("not an SQLite file; {}", kExpected));
    case FileLook::Kind::kDatabase:
      return;
  }
}

void check_whole(const std::string& path, const FileLook& look) {
  // SQLite reads a file whose tail is missing as far as it goes.
  if (look.file_bytes < look.whole_bytes)
    refuse(path, fmt::format("cut short: {} bytes of {}; run the case again", look.file_bytes,
                             look.whole_bytes));
  const auto& unfinished = look.journal.empty() ? look.log : look.journal;
  if (!unfinished.empty())
    refuse(path, fmt::format("another program has not ended changing it: {} lies beside it. A "
                             "trace is never changed; run the case again",
                             unfinished));
}

// The tables that are read.
std::vector<Wanted> read_tables() {
  return {{"trace", {"device", "emulated", "events", "own_space", "counts_build"}},
          {"spaces", {"id", "name"}},
          {"modules", {"id", "name"}},
          {"operators", {"id", "name"}},
          {"names", {"id", "event", "role", "name", "shape", "dtype"}},
          {"scopes", {"id", "event", "thread", "kind", "ends", "phase", "step"}},
          {"files", {"id", "name"}},
          {"functions", {"id", "name"}},
          {"frames", {"id", "parent", "file", "function", "line"}},
          {"ranges", {"id", "parent", "name"}},
          {"counted_steps", {"id", "first", "last"}},
          {"events",
           {"id", "kind", "phase", "in_update", "in_recompute", "space", "step", "module",
            "operator", "stream", "recompute", "address", "thread", "stack", "requested_bytes",
            "block_bytes", "time_ns", "range", "pool"}}};
}

void require_plain(const Database& database, const std::vector<Wanted>& tables) {
  if (const auto problem = sqlite::not_plain(database, tables); !problem.empty())
    throw Damage{problem};
}

}  // namespace

Database open_trace(const std::string& path) {
  const auto look = sqlite::look_at(path);
  check_kind(path, look);
  check_whole(path, look);
  auto database = Database::open_finished(path);
  database.limit_length(kMostTextBytes);
  return database;
}

void check_schema(const std::string& path, const Database& database) {
  Statement tables(database,
                   "SELECT count(*) FROM sqlite_schema WHERE name IN "
                   "('schema_version', 'trace', 'events')");
  if (!tables.next() || tables.integer(0) != 3)
    refuse(path, fmt::format("an SQLite file, but not a trace; {}", kExpected));
  require_plain(database, {{"schema_version", {"version"}}});
  Statement row(database, "SELECT max(version) AS version FROM schema_version");
  if (!row.next() || row.is_null(0)) throw Damage{"no schema version"};
  const auto version = row.integer(0);
  if (version < 1) throw Damage{fmt::format("schema version {}", version)};
  if (version != kTraceSchemaVersion)
    refuse(path,
           fmt::format("written by {} Peakbench: trace schema {}, this one reads {}; {}",
                       version > kTraceSchemaVersion ? "a newer" : "an older", version,
                       kTraceSchemaVersion,
                       version > kTraceSchemaVersion ? "update Peakbench" : "run the case again"));
  require_plain(database, read_tables());
}

}  // namespace peakbench::trace
