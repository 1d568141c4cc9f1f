#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>

#include "base/database.h"
#include "base/errors.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"
#include "trace/schema.h"
#include "trace/trace_file.h"

namespace peakbench::trace {
namespace {

using sqlite::Database;
using sqlite::DatabaseError;
using sqlite::Statement;

void insert_words(Database& database, const std::string& table,
                  const std::vector<std::string>& words) {
  Statement insert(database, "INSERT INTO " + table + " VALUES (?, ?)");
  for (std::size_t i = 0; i < words.size(); ++i) {
    insert.bind(0, static_cast<std::int64_t>(i));
    insert.bind(1, words[i]);
    insert.run();
  }
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

void bind_or_null(Statement& statement, int parameter, std::int64_t value) {
  value == kNone ? statement.bind_null(parameter) : statement.bind(parameter, value);
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

  // Of the row to come. A text must live until the end.
  template <class Value>
  void bind(int column, const Value& value) {
    statement().bind(first_ + column, value);
  }
  void bind_or_null(int column, std::int64_t value) {
    trace::bind_or_null(statement(), first_ + column, value);
  }

  void end_row() {
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
  for (const auto& span : trace.counted_steps) {
    insert.bind(0, id++);
    insert.bind(1, span.first);
    insert.bind(2, span.last);
    insert.run();
  }
}

void insert_events(Database& database, const Trace& trace) {
  Inserter insert(database, "events", 19, trace.events.size());
  std::int64_t id = 0;
  for (const auto& event : trace.events) {
    insert.bind(0, id++);
    insert.bind(1, static_cast<std::int64_t>(event.kind));
    insert.bind(2, static_cast<std::int64_t>(event.phase));
    insert.bind(3, static_cast<std::int64_t>(event.in_update));
    insert.bind(4, static_cast<std::int64_t>(event.in_recompute));
    insert.bind(5, std::int64_t{event.space});
    insert.bind_or_null(6, event.step);
    insert.bind_or_null(7, event.module);
    insert.bind_or_null(8, event.op);
    insert.bind(9, std::int64_t{event.stream});
    insert.bind_or_null(10, event.recompute);
    insert.bind(11, static_cast<std::int64_t>(event.address));
    insert.bind(12, event.requested_bytes);
    insert.bind(13, event.block_bytes);
    insert.bind_or_null(14, event.time_ns);
    insert.bind(15, std::int64_t{event.thread});
    insert.bind_or_null(16, event.stack);
    insert.bind_or_null(17, event.range);
    insert.bind_or_null(18, event.pool);
    insert.end_row();
  }
}

void insert_frames(Database& database, const Trace& trace) {
  Statement insert(database, "INSERT INTO frames VALUES (?, ?, ?, ?, ?)");
  std::int64_t id = 0;
  for (const auto& frame : trace.frames) {
    insert.bind(0, id++);
    bind_or_null(insert, 1, frame.parent);
    insert.bind(2, frame.file);
    insert.bind(3, frame.function);
    insert.bind(4, frame.line);
    insert.run();
  }
}

void insert_ranges(Database& database, const Trace& trace) {
  Statement insert(database, "INSERT INTO ranges VALUES (?, ?, ?)");
  std::int64_t id = 0;
  for (const auto& range : trace.ranges) {
    insert.bind(0, id++);
    bind_or_null(insert, 1, range.parent);
    insert.bind(2, range.name);
    insert.run();
  }
}

void insert_scopes(Database& database, const Trace& trace) {
  Statement insert(database, "INSERT INTO scopes VALUES (?, ?, ?, ?, ?, ?, ?)");
  std::int64_t id = 0;
  for (const auto& mark : trace.scopes) {
    const bool says_phase = mark.kind == ScopeKind::kPhase;
    insert.bind(0, id++);
    insert.bind(1, static_cast<std::int64_t>(mark.event));
    insert.bind(2, mark.thread);
    insert.bind(3, static_cast<std::int64_t>(mark.kind));
    insert.bind(4, static_cast<std::int64_t>(mark.ends));
    bind_or_null(insert, 5, says_phase ? static_cast<std::int64_t>(mark.phase) : kNone);
    bind_or_null(insert, 6, says_phase ? mark.step : kNone);
    insert.run();
  }
}

void insert_names(Database& database, const Trace& trace) {
  Inserter insert(database, "names", 6, trace.names.size());
  std::int64_t id = 0;
  for (const auto& name : trace.names) {
    insert.bind(0, id++);
    insert.bind(1, static_cast<std::int64_t>(name.event));
    insert.bind(2, static_cast<std::int64_t>(name.role));
    insert.bind(3, name.name);
    insert.bind(4, name.shape);
    insert.bind(5, name.dtype);
    insert.end_row();
  }
}

void insert_allocations(Database& database, const std::vector<Lifetime>& lifetimes) {
  Inserter insert(database, "allocations", 5, lifetimes.size());
  for (const auto& lifetime : lifetimes) {
    insert.bind(0, static_cast<std::int64_t>(lifetime.first));
    insert.bind(1, static_cast<std::int64_t>(lifetime.last));
    insert.bind(2, static_cast<std::int64_t>(lifetime.released));
    insert.bind(3, static_cast<std::int64_t>(lifetime.category));
    insert.bind_or_null(4, lifetime.name);
    insert.end_row();
  }
}

void insert_peaks(Database& database, const Trace& trace, const std::vector<Lifetime>& lifetimes) {
  Statement insert(database, "INSERT INTO peaks VALUES (?, ?, ?, ?)");
  const auto maxima = maxima_of_spaces(trace, lifetimes);
  for (std::size_t space = 0; space < trace.spaces.size(); ++space) {
    const auto peak = peak_of(trace, lifetimes, maxima[space], static_cast<int>(space));
    insert.bind(0, static_cast<std::int64_t>(space));
    insert.bind(1, static_cast<std::int64_t>(peak.event));
    insert.bind(2, peak.allocated_bytes);
    insert.bind(3, peak.requested_bytes);
    insert.run();
  }
}

void insert_head(Database& database, const Trace& trace, const std::string& problem) {
  Statement version(database, "INSERT INTO schema_version VALUES (?)");
  version.bind(0, kTraceSchemaVersion);
  version.run();
  Statement head(database, "INSERT INTO trace VALUES (?, ?, ?, ?, ?, ?)");
  head.bind(0, trace.device);
  head.bind(1, static_cast<std::int64_t>(trace.emulated));
  head.bind(2, static_cast<std::int64_t>(trace.events.size()));
  head.bind(3, trace.own_space);
  problem.empty() ? head.bind_null(4) : head.bind(4, problem);
  head.bind(5, static_cast<std::int64_t>(trace.counts_build));
  head.run();
}

struct Derived {
  std::vector<Lifetime> lifetimes;
  std::string problem;  // why there are none
};

Derived derive(const Trace& trace) {
  try {
    return {lifetimes(trace), ""};
  } catch (const TraceError& error) {
    return {{}, error.what()};
  }
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
  const auto derived = derive(trace);
  write(trace, derived.lifetimes, derived.problem, path);
}

}  // namespace peakbench::trace
