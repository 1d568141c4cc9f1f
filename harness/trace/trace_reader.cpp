#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <limits>
#include <new>
#include <vector>

#include "base/database.h"
#include "base/errors.h"
#include "trace/checks.h"
#include "trace/output_file.h"
#include "trace/trace_file.h"

namespace peakbench::trace {
namespace {

using sqlite::Database;
using sqlite::DatabaseError;
using sqlite::Statement;

namespace column {
enum : std::uint8_t { kId, kEvent, kThread, kKind, kEnds, kPhase, kStep, kCount };
constexpr std::uint32_t kNullable = 1U << kPhase | 1U << kStep;
}  // namespace column
using ScopeRow = std::array<std::int64_t, column::kCount>;

ScopeMark read_mark(const ScopeRow& row, std::size_t events) {
  ScopeMark mark;
  mark.event =
      narrow<std::uint64_t>(row[column::kEvent], "event", 0, static_cast<std::int64_t>(events));
  mark.thread = narrow<std::int32_t>(row[column::kThread], "thread", 0);
  mark.kind =
      static_cast<ScopeKind>(narrow<int>(row[column::kKind], "scope kind", 0, kScopeKindCount - 1));
  mark.ends = narrow<int>(row[column::kEnds], "ends", 0, 1) != 0;
  const bool says_phase = mark.kind == ScopeKind::kPhase;
  if (says_phase != (row[column::kPhase] != kNull))
    throw Damage{says_phase ? "a phase scope without a phase" : "a phase in another scope"};
  if (!says_phase) return mark;
  mark.phase = static_cast<Phase>(narrow<int>(row[column::kPhase], "phase", 0, kPhaseCount - 1));
  mark.step = index_or_none(row[column::kStep], "step", kMostSteps);
  return mark;
}

std::vector<ScopeMark> read_scopes(const Database& database, std::size_t events) {
  std::vector<ScopeMark> marks;
  ScopeChecks order;
  Statement rows(database,
                 "SELECT id, event, thread, kind, ends, phase, step FROM scopes ORDER BY id");
  ScopeRow row{};
  while (rows.next()) {
    rows.integers(row.data(), column::kNullable, kNull);
    expect_number(row[column::kId], marks.size(), "scope");
    if (marks.size() == static_cast<std::size_t>(kMostEvents))
      throw Damage{fmt::format("more than {} scopes", kMostEvents)};
    try {
      marks.push_back(read_mark(row, events));
      order.add(marks.back());
    } catch (const Damage& damage) {
      throw Damage{fmt::format("scope {}: {}", row[column::kId], damage.what)};
    }
  }
  return marks;
}

// JSON, pickles and pages hold nothing else than UTF-8.
std::string text_of(const Statement& row, int column) { return valid_utf8(row.text(column)); }

std::vector<std::string> read_words(const Database& database, const char* table, std::size_t most) {
  std::vector<std::string> words;
  Statement rows(database, fmt::format("SELECT id, name FROM {} ORDER BY id", table));
  while (rows.next()) {
    expect_number(rows.integer(0), words.size(), table);
    if (words.size() == most) throw Damage{fmt::format("more than {} {}", most, table)};
    words.push_back(text_of(rows, 1));
  }
  return words;
}

constexpr const char* kEventsQuery =
    "SELECT id, kind, phase, in_update, in_recompute, space, step, module, operator, stream, "
    "recompute, address, requested_bytes, block_bytes, time_ns, thread, stack, range, pool "
    "FROM events WHERE id >= ? ORDER BY id";

enum EventColumn {
  kId,
  kKind,
  kPhase,
  kInUpdate,
  kInRecompute,
  kSpace,
  kStep,
  kModule,
  kOperator,
  kStream,
  kRecompute,
  kAddress,
  kRequestedBytes,
  kBlockBytes,
  kTime,
  kThread,
  kStack,
  kRange,
  kPool,
  kEventColumns
};
constexpr std::uint32_t kNullable = 1U << kStep | 1U << kModule | 1U << kOperator |
                                    1U << kRecompute | 1U << kTime | 1U << kStack | 1U << kRange |
                                    1U << kPool;
using EventRow = std::array<std::int64_t, kEventColumns>;

Event read_event(const EventRow& row, const Trace& trace) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  constexpr auto kMostTime = std::numeric_limits<std::int64_t>::max() / 2;
  Event event;
  event.kind =
      static_cast<EventKind>(narrow<int>(row[kKind], "event kind", 0, kEventKindCount - 1));
  event.phase = static_cast<Phase>(narrow<int>(row[kPhase], "phase", 0, kPhaseCount - 1));
  event.in_update = row[kInUpdate] != 0;
  event.in_recompute = row[kInRecompute] != 0;
  event.space = narrow<std::int16_t>(row[kSpace], "space", 0,
                                     static_cast<std::int64_t>(trace.spaces.size()) - 1);
  event.step = index_or_none(row[kStep], "step", kMostSteps);
  event.module = index_or_none(row[kModule], "module", trace.modules.size());
  event.op = index_or_none(row[kOperator], "operator", trace.operators.size());
  event.stream = narrow<std::int32_t>(row[kStream], "stream", 0);
  event.recompute = index_or_none(row[kRecompute], "recompute", kMost);
  event.thread = narrow<std::int32_t>(row[kThread], "thread", 0);
  event.stack = index_or_none(row[kStack], "stack", trace.frames.size());
  event.range = index_or_none(row[kRange], "range", trace.ranges.size());
  event.pool = index_or_none(row[kPool], "pool", kMost);
  event.address = static_cast<std::uint64_t>(row[kAddress]);
  event.requested_bytes = narrow<std::int64_t>(row[kRequestedBytes], "requested bytes", 0);
  event.block_bytes = narrow<std::int64_t>(row[kBlockBytes], "block bytes", 0);
  event.time_ns = row[kTime] == kNull ? -1 : narrow<std::int64_t>(row[kTime], "time", 0, kMostTime);
  return event;
}

// A stretch of the events, and what must be right of all of them together.
struct Stretch {
  std::vector<Event> events;
  EventChecks checks;

  void add(const Event& event) {
    checks.add(event);
    events.push_back(event);
  }
  void append(const Stretch& next) {
    checks.append(next.checks);
    events.insert(events.end(), next.events.begin(), next.events.end());
  }
};

constexpr const char* kMissing = "is missing";

// The events [first, last). Memory is taken as events are there, not as the file says.
Stretch read_range(const Database& database, const Trace& trace, std::size_t first,
                   std::size_t last, std::size_t room) {
  constexpr std::size_t kRoom = 4'000'000;
  Stretch stretch;
  stretch.events.reserve(std::min(room, kRoom));
  Statement rows(database, kEventsQuery);
  rows.bind(0, first);
  EventRow row{};
  auto number = first;
  try {
    for (; number < last; ++number) {
      if (!rows.next()) throw Damage{kMissing};
      rows.integers(row.data(), kNullable, kNull);
      if (row[kId] != static_cast<std::int64_t>(number)) throw Damage{kMissing};
      stretch.add(read_event(row, trace));
    }
  } catch (const Damage& damage) {
    throw Damage{
        fmt::format("event {}{} {}", number, damage.what == kMissing ? "" : ":", damage.what)};
  } catch (const DatabaseError& error) {
    throw Damage{fmt::format("event {}: {}", number, error.what())};
  }
  return stretch;
}

std::size_t count_events(const Database& database) {
  Statement rows(database, "SELECT coalesce(max(id) + 1, 0) FROM events");
  rows.next();
  return static_cast<std::size_t>(rows.integer(0));
}

// A long trace is read by two, each with a connection of its own: it is most of a report's time.
void read_events(const Database& database, const std::string& path, Trace& trace,
                 std::size_t count) {
  constexpr std::size_t kLong = 100'000;
  const auto there = count_events(database);
  if (there != count) throw Damage{fmt::format("{} events of {}", there, count)};
  const auto middle = count < kLong ? count : count / 15 * 7;  // who joins the two has less to read
  auto rest = std::async(std::launch::async, [&] {
    return middle < count ? read_range(open_trace(path), trace, middle, count, count - middle)
                          : Stretch{};
  });
  auto stretch = read_range(database, trace, 0, middle, count);
  stretch.append(rest.get());
  trace.events = std::move(stretch.events);
}

void read_frames(const Database& database, Trace& trace) {
  trace.files = read_words(database, "files", kMostWords);
  trace.functions = read_words(database, "functions", kMostWords);
  Statement rows(database, "SELECT id, parent, file, function, line FROM frames ORDER BY id");
  std::array<std::int64_t, 5> row{};
  while (rows.next()) {
    rows.integers(row.data(), 1U << 1U, kNull);
    expect_number(row[0], trace.frames.size(), "frame");
    if (trace.frames.size() == static_cast<std::size_t>(kMostEvents))
      throw Damage{fmt::format("more than {} frames", kMostEvents)};
    StackFrame frame;
    frame.parent = index_or_none(row[1], "calling frame", trace.frames.size());
    frame.file = index_or_none(row[2], "file", trace.files.size());
    frame.function = index_or_none(row[3], "function", trace.functions.size());
    frame.line = narrow<std::int32_t>(row[4], "line", 0);
    trace.frames.push_back(frame);
  }
}

void read_ranges(const Database& database, Trace& trace) {
  Statement rows(database, "SELECT id, parent, name FROM ranges ORDER BY id");
  while (rows.next()) {
    expect_number(rows.integer(0), trace.ranges.size(), "range");
    if (trace.ranges.size() == kMostWords)
      throw Damage{fmt::format("more than {} ranges", kMostWords)};
    const auto parent = rows.is_null(1) ? kNull : rows.integer(1);
    trace.ranges.push_back({.parent = index_or_none(parent, "outer range", trace.ranges.size()),
                            .name = text_of(rows, 2)});
  }
}

void read_names(const Database& database, Trace& trace) {
  Statement rows(database, "SELECT id, event, role, name, shape, dtype FROM names ORDER BY id");
  const auto last = static_cast<std::int64_t>(trace.events.size()) - 1;
  while (rows.next()) {
    expect_number(rows.integer(0), trace.names.size(), "name");
    Name name;
    name.event = narrow<std::uint64_t>(rows, 1, "named event", 0, last);
    name.role = static_cast<Role>(narrow<int>(rows, 2, "role", 0, kRoleCount - 1));
    name.name = text_of(rows, 3);
    name.shape = text_of(rows, 4);
    name.dtype = text_of(rows, 5);
    trace.names.push_back(std::move(name));
  }
}

void read_counted_steps(const Database& database, Trace& trace) {
  constexpr std::int64_t kMostSteps = std::numeric_limits<std::int32_t>::max();
  Statement rows(database, "SELECT id, first, last FROM counted_steps ORDER BY id");
  while (rows.next()) {
    const auto after = trace.counted_steps.empty() ? 0 : trace.counted_steps.back().last + 1LL;
    const auto first = narrow<std::int32_t>(rows, 1, "counted step", after, kMostSteps);
    const auto last = narrow<std::int32_t>(rows, 2, "counted step", first, kMostSteps);
    trace.counted_steps.push_back({first, last});
  }
}

Trace read(const Database& database, const std::string& path) {
  Trace trace;
  Statement head(database, "SELECT device, emulated, events, own_space, counts_build FROM trace");
  if (!head.next()) throw Damage{"the table `trace` is empty"};
  trace.device = text_of(head, 0);
  trace.emulated = head.integer(1) != 0;
  trace.spaces = read_words(database, "spaces", kMostSpaces);
  const auto last_space = static_cast<std::int64_t>(trace.spaces.size()) - 1;
  trace.own_space = narrow<int>(head, 3, "own space", 0, std::max<std::int64_t>(last_space, 0));
  trace.counts_build = narrow<int>(head, 4, "counts_build", 0, 1) != 0;
  trace.modules = read_words(database, "modules", kMostWords);
  trace.operators = read_words(database, "operators", kMostWords);
  read_frames(database, trace);
  read_ranges(database, trace);
  read_counted_steps(database, trace);
  read_events(database, path, trace, narrow<std::size_t>(head, 2, "events", 0, kMostEvents));
  read_names(database, trace);
  trace.scopes = read_scopes(database, trace.events.size());
  return trace;
}

std::string words_of(const DatabaseError& error) {
  if (error.is_too_long()) return fmt::format("a text of more than {} bytes", kMostTextBytes);
  return error.what();
}

}  // namespace

Trace read_trace(const std::string& path) {
  try {
    const auto database = open_trace(path);
    check_schema(path, database);
    return read(database, path);
  } catch (const DatabaseError& error) {
    throw ConfigError(fmt::format("{}: damaged: {}; run the case again", path, words_of(error)));
  } catch (const Damage& damage) {
    throw ConfigError(fmt::format("{}: damaged: {}; run the case again", path, damage.what));
  } catch (const std::bad_alloc&) {
    throw ConfigError(fmt::format("{}: there is not enough memory for what it holds", path));
  }
}

}  // namespace peakbench::trace
