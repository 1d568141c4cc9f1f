#include "trace/checks.h"

#include "base/database_file.h"
#include "base/errors.h"
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
    refuse(path, fmt::format("another program is changing it, or was killed meanwhile: {} is next "
                             "to it. A trace is never changed; run the case again",
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

namespace {

// All that is ever asked for in one trace: sums and differences of these hold in 64 bits.
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max() / 4;

void check_words(const std::vector<std::string>& words, const char* what) {
  if (words.size() > kMostWords) throw Damage{fmt::format("more than {} {}", kMostWords, what)};
  for (const auto& word : words)
    if (word.size() > static_cast<std::size_t>(kMostTextBytes))
      throw Damage{fmt::format("a text of more than {} bytes", kMostTextBytes)};
}

}  // namespace

void EventChecks::add(const Event& event) {
  const bool failed = event.kind == EventKind::kOutOfMemory;  // its size was never given
  count_bytes(event.block_bytes);
  if (!failed) count_bytes(event.requested_bytes);
  const auto size = static_cast<std::uint64_t>(event.block_bytes);
  if (!failed && event.address + size < event.address)
    throw Damage{fmt::format("a block of {} bytes at {:#x}", event.block_bytes, event.address)};
  if (event.step != kNone) follow(event.step, event.step);
}

void EventChecks::append(const EventChecks& next) {
  if (next.first_step_ != kNone) follow(next.first_step_, next.last_step_);
  count_bytes(next.bytes_);
}

void EventChecks::count_bytes(std::int64_t count) {
  if (count < 0 || count > kMostBytes - bytes_)
    throw Damage{"the sizes add up to more than any card has"};
  bytes_ += count;
}

void EventChecks::follow(std::int32_t first, std::int32_t last) {
  if (first < last_step_) throw Damage{fmt::format("step {} after step {}", first, last_step_)};
  if (first_step_ == kNone) first_step_ = first;
  last_step_ = last;
}

void ScopeChecks::add(const ScopeMark& mark) {
  if (mark.event < event_)
    throw Damage{fmt::format("before event {}, after one before event {}", mark.event, event_)};
  event_ = mark.event;
  if (mark.step != kNone) {
    if (mark.step < step_) throw Damage{fmt::format("step {} after step {}", mark.step, step_)};
    step_ = mark.step;
  }
  auto& open = open_[{mark.thread, mark.kind}];
  const bool has_no_end = mark.kind == ScopeKind::kPhase || mark.kind == ScopeKind::kModule;
  if (!mark.ends)
    ++open;
  else if (has_no_end || open-- == 0)
    throw Damage{"the end of what did not begin"};
}

std::string why_not_readable(const Trace& trace) {
  try {
    if (trace.spaces.size() > kMostSpaces)
      throw Damage{fmt::format("more than {} spaces", kMostSpaces)};
    if (trace.events.size() > static_cast<std::size_t>(kMostEvents))
      throw Damage{fmt::format("more than {} events", kMostEvents)};
    check_words(trace.spaces, "spaces");
    check_words(trace.modules, "modules");
    check_words(trace.operators, "operators");
    check_words(trace.files, "files");
    check_words(trace.functions, "functions");
    for (const auto& range : trace.ranges) check_words({range.name}, "ranges");
    for (const auto& name : trace.names) check_words({name.name, name.shape, name.dtype}, "names");
    EventChecks events;
    for (const auto& event : trace.events) events.add(event);
    ScopeChecks scopes;
    for (const auto& scope : trace.scopes) scopes.add(scope);
  } catch (const Damage& damage) {
    return damage.what;
  }
  return "";
}

}  // namespace peakbench::trace
