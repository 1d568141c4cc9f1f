#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/database.h"
#include "base/errors.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"
#include "trace/trace_file.h"

namespace peakbench::trace {
namespace {

using sqlite::Database;
using sqlite::DatabaseError;
using sqlite::Statement;

// docs/reference/trace.md explains them.
constexpr const char* kTables = R"(
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE trace (device TEXT NOT NULL, emulated INTEGER NOT NULL, events INTEGER NOT NULL,
                    own_space INTEGER NOT NULL, problem TEXT,
                    counts_build INTEGER NOT NULL);
CREATE TABLE counted_steps (id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE event_kinds (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE phases (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE categories (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE roles (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE scope_kinds (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE spaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE modules (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE operators (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE files (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE functions (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE ranges (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT NOT NULL);
CREATE TABLE frames (
  id INTEGER PRIMARY KEY, parent INTEGER, file INTEGER NOT NULL, function INTEGER NOT NULL,
  line INTEGER NOT NULL);
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL, phase INTEGER NOT NULL, in_update INTEGER NOT NULL,
  in_recompute INTEGER NOT NULL, space INTEGER NOT NULL, step INTEGER, module INTEGER,
  operator INTEGER, stream INTEGER NOT NULL, recompute INTEGER, address INTEGER NOT NULL,
  requested_bytes INTEGER NOT NULL, block_bytes INTEGER NOT NULL, time_ns INTEGER,
  thread INTEGER NOT NULL, stack INTEGER, range INTEGER, pool INTEGER);
CREATE TABLE scopes (
  id INTEGER PRIMARY KEY, event INTEGER NOT NULL, thread INTEGER NOT NULL, kind INTEGER NOT NULL,
  ends INTEGER NOT NULL, phase INTEGER, step INTEGER);
CREATE TABLE names (
  id INTEGER PRIMARY KEY, event INTEGER NOT NULL, role INTEGER NOT NULL, name TEXT NOT NULL,
  shape TEXT NOT NULL, dtype TEXT NOT NULL);
CREATE TABLE allocations (
  event INTEGER PRIMARY KEY, last_event INTEGER NOT NULL, released_event INTEGER NOT NULL,
  category INTEGER NOT NULL, name INTEGER);
CREATE TABLE peaks (
  space INTEGER PRIMARY KEY, event INTEGER NOT NULL, allocated_bytes INTEGER NOT NULL,
  requested_bytes INTEGER NOT NULL);
)";

constexpr const char* kViews = R"(
CREATE VIEW events_in_words AS
SELECT e.id, k.name AS kind, p.name AS phase, e.step, e.in_update, e.in_recompute, s.name AS space,
       m.name AS module, o.name AS operator, e.stream, e.address, e.requested_bytes, e.block_bytes,
       e.time_ns, r.name AS range, e.pool
FROM events e
JOIN event_kinds k ON k.id = e.kind JOIN phases p ON p.id = e.phase
JOIN spaces s ON s.id = e.space
LEFT JOIN modules m ON m.id = e.module LEFT JOIN operators o ON o.id = e.operator
LEFT JOIN ranges r ON r.id = e.range;
CREATE VIEW alive_at_peak AS
SELECT s.name AS space, a.event, c.name AS category, p.name AS phase, e.step, m.name AS module,
       o.name AS operator, n.name AS name, n.shape, n.dtype, e.requested_bytes, e.block_bytes,
       r.name AS range
FROM peaks k
JOIN allocations a ON a.event <= k.event AND a.last_event > k.event
JOIN events e ON e.id = a.event AND e.space = k.space
JOIN spaces s ON s.id = e.space JOIN categories c ON c.id = a.category
JOIN phases p ON p.id = e.phase
LEFT JOIN modules m ON m.id = e.module LEFT JOIN operators o ON o.id = e.operator
LEFT JOIN names n ON n.id = a.name LEFT JOIN ranges r ON r.id = e.range;
)";

// Of what is kNone: NULL.
std::optional<std::int64_t> or_null(std::int64_t value) {
  return value == kNone ? std::nullopt : std::optional(value);
}

void insert_words(Database& database, const std::string& table,
                  const std::vector<std::string>& words) {
  Statement insert(database, "INSERT INTO " + table + " VALUES (?, ?)");
  for (std::size_t i = 0; i < words.size(); ++i) insert.run(i, words[i]);
}

template <class Enum, std::size_t count>
std::vector<std::string> words_of() {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < count; ++i) words.emplace_back(to_string(static_cast<Enum>(i)));
  return words;
}

void insert_dictionaries(Database& database, const Trace& trace) {
  insert_words(database, "event_kinds", words_of<EventKind, kEventKindCount>());
  insert_words(database, "phases", words_of<Phase, kPhaseCount>());
  insert_words(database, "categories", words_of<Category, kCategoryCount>());
  insert_words(database, "roles", words_of<Role, kRoleCount>());
  insert_words(database, "scope_kinds", words_of<ScopeKind, kScopeKindCount>());
  insert_words(database, "spaces", trace.spaces);
  insert_words(database, "modules", trace.modules);
  insert_words(database, "operators", trace.operators);
  insert_words(database, "files", trace.files);
  insert_words(database, "functions", trace.functions);
}

// Exactly so many rows of a table, several with each statement: one with each takes a quarter
// longer.
class Inserter {
 public:
  Inserter(Database& database, const std::string& table, int columns, std::size_t rows)
      : columns_(columns),
        together_left_(rows / kTogether),
        together_(database, text(table, kTogether)),
        single_(database, text(table, 1)) {}

  // Texts must live until the end.
  template <class... Values>
  void row(const Values&... values) {
    int parameter = first_;
    (statement().bind(parameter++, values), ...);
    if (together_left_ == 0) return single_.run();
    first_ += columns_;
    if (first_ < kTogether * columns_) return;
    together_.run();
    first_ = 0;
    --together_left_;
  }

 private:
  static constexpr int kTogether = 8;

  std::string text(const std::string& table, int rows) const {
    const std::vector<const char*> values(static_cast<std::size_t>(columns_), "?");
    const std::vector<std::string> lists(static_cast<std::size_t>(rows),
                                         fmt::format("({})", fmt::join(values, ", ")));
    return fmt::format("INSERT INTO {} VALUES {}", table, fmt::join(lists, ", "));
  }
  Statement& statement() { return together_left_ > 0 ? together_ : single_; }

  int columns_, first_ = 0;  // parameter of the row to come
  std::size_t together_left_;
  Statement together_, single_;
};

void insert_counted_steps(Database& database, const Trace& trace) {
  Statement insert(database, "INSERT INTO counted_steps VALUES (?, ?, ?)");
  std::int64_t id = 0;
  for (const auto& span : trace.counted_steps) insert.run(id++, span.first, span.last);
}

void insert_events(Database& database, const Trace& trace) {
  Inserter insert(database, "events", 19, trace.events.size());
  std::int64_t id = 0;
  for (const auto& event : trace.events) {
    insert.row(id++, event.kind, event.phase, event.in_update, event.in_recompute, event.space,
               or_null(event.step), or_null(event.module), or_null(event.op), event.stream,
               or_null(event.recompute), event.address, event.requested_bytes, event.block_bytes,
               or_null(event.time_ns), event.thread, or_null(event.stack), or_null(event.range),
               or_null(event.pool));
  }
}

void insert_frames(Database& database, const Trace& trace) {
  Statement insert(database, "INSERT INTO frames VALUES (?, ?, ?, ?, ?)");
  std::int64_t id = 0;
  for (const auto& frame : trace.frames)
    insert.run(id++, or_null(frame.parent), frame.file, frame.function, frame.line);
}

void insert_ranges(Database& database, const Trace& trace) {
  Statement insert(database, "INSERT INTO ranges VALUES (?, ?, ?)");
  std::int64_t id = 0;
  for (const auto& range : trace.ranges) insert.run(id++, or_null(range.parent), range.name);
}

void insert_scopes(Database& database, const Trace& trace) {
  Statement insert(database, "INSERT INTO scopes VALUES (?, ?, ?, ?, ?, ?, ?)");
  std::int64_t id = 0;
  for (const auto& mark : trace.scopes) {
    const bool says_phase = mark.kind == ScopeKind::kPhase;
    insert.run(id++, mark.event, mark.thread, mark.kind, mark.ends,
               or_null(says_phase ? static_cast<std::int64_t>(mark.phase) : kNone),
               or_null(says_phase ? mark.step : kNone));
  }
}

void insert_names(Database& database, const Trace& trace) {
  Inserter insert(database, "names", 6, trace.names.size());
  std::int64_t id = 0;
  for (const auto& name : trace.names)
    insert.row(id++, name.event, name.role, name.name, name.shape, name.dtype);
}

void insert_allocations(Database& database, const std::vector<Lifetime>& lifetimes) {
  Inserter insert(database, "allocations", 5, lifetimes.size());
  for (const auto& lifetime : lifetimes) {
    insert.row(lifetime.first, lifetime.last, lifetime.released, lifetime.category,
               or_null(lifetime.name));
  }
}

void insert_peaks(Database& database, const Trace& trace, const std::vector<Lifetime>& lifetimes) {
  Statement insert(database, "INSERT INTO peaks VALUES (?, ?, ?, ?)");
  const auto maxima = maxima_of_spaces(trace, lifetimes);
  for (std::size_t space = 0; space < trace.spaces.size(); ++space) {
    const auto peak = peak_of(trace, lifetimes, maxima[space], static_cast<int>(space));
    insert.run(space, peak.event, peak.allocated_bytes, peak.requested_bytes);
  }
}

void insert_head(Database& database, const Trace& trace, const std::string& problem) {
  Statement version(database, "INSERT INTO schema_version VALUES (?)");
  version.run(kTraceSchemaVersion);
  Statement head(database, "INSERT INTO trace VALUES (?, ?, ?, ?, ?, ?)");
  head.run(trace.device, trace.emulated, trace.events.size(), trace.own_space,
           problem.empty() ? std::nullopt : std::optional(problem), trace.counts_build);
}

void fill(Database& database, const Trace& trace, const std::vector<Lifetime>& lifetimes,
          const std::string& problem) {
  database.execute("BEGIN");
  database.execute(kTables);
  database.execute(kViews);
  insert_head(database, trace, problem);
  insert_dictionaries(database, trace);
  insert_frames(database, trace);
  insert_ranges(database, trace);
  insert_counted_steps(database, trace);
  insert_events(database, trace);
  insert_scopes(database, trace);
  insert_names(database, trace);
  if (problem.empty()) {
    insert_allocations(database, lifetimes);
    insert_peaks(database, trace, lifetimes);
  }
  database.execute("COMMIT");
}

// An error of the system's is the machine's or the user's to mend; all others are ours.
[[noreturn]] void fail_write(const std::string& path, const DatabaseError& error) {
  if (error.system == 0)
    throw TraceError(fmt::format("{}: the trace cannot be written: {}", path, error.what()));
  throw HostError(
      fmt::format("{}: the trace cannot be written: {}", path, host_error_text(error.system)));
}

void write(const Trace& trace, const std::vector<Lifetime>& lifetimes, const std::string& problem,
           const std::string& path) {
  const auto partial = path + ".partial";
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  try {
    auto database = Database::create(partial);
    fill(database, trace, lifetimes, problem);
    database.close();
    std::filesystem::rename(partial, path);
  } catch (const DatabaseError& error) {
    std::filesystem::remove(partial, ignored);
    fail_write(path, error);
  } catch (const std::filesystem::filesystem_error& error) {
    std::filesystem::remove(partial, ignored);
    fail_write(path, DatabaseError(error.what(), 0, error.code().value()));
  }
}

}  // namespace

void write_trace(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                 const std::string& path) {
  write(trace, lifetimes, "", path);
}

void write_trace(const Trace& trace, const std::string& path) {
  std::vector<Lifetime> found;
  std::string problem;
  try {
    found = lifetimes(trace);
  } catch (const TraceError& error) {
    problem = error.what();
  }
  write(trace, found, problem, path);
}

}  // namespace peakbench::trace
