#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <string_view>

#include "result/errors.h"
#include "sqlite/database.h"
#include "trace/trace_file.h"

namespace peakbench::trace {
namespace {

using sqlite::Database;
using sqlite::DatabaseError;
using sqlite::Statement;

constexpr const char* kExpected = "expected the trace.sqlite of a case";

// Found in the file's content, to be reported with its path.
struct Damage {
  std::string what;
};

// Big-endian, as everything in SQLite's header (sqlite.org/fileformat.html).
std::uint64_t big_endian(const char* bytes, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

// SQLite reads a file whose tail is missing as far as it goes: look at its own size first.
void check_header(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    throw ConfigError(fmt::format("{}: no such file; {}", path, kExpected));
  if (std::filesystem::is_directory(status))
    throw ConfigError(fmt::format("{}: a folder; {}", path, kExpected));
  std::array<char, 100> header{};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ConfigError(fmt::format("{}: cannot be opened for reading", path));
  file.read(header.data(), header.size());
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  if (std::string_view(header.data(), kMagic.size()) != kMagic)
    throw ConfigError(fmt::format("{}: not an SQLite file; {}", path, kExpected));
  const auto stored = big_endian(header.data() + 16, 2);
  const auto page_bytes = stored == 1 ? 65536 : stored;
  const auto whole = page_bytes * big_endian(header.data() + 28, 4);
  const auto size = std::filesystem::file_size(path, error);
  if (size < whole)
    throw ConfigError(
        fmt::format("{}: cut short: {} bytes of {}; run the case again", path, size, whole));
}

// Of the file. Throws ConfigError for one that is not a trace, or newer than this program.
std::int64_t check_version(const std::string& path, const Database& database) {
  Statement tables(database,
                   "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN "
                   "('schema_version', 'trace', 'events')");
  if (!tables.next() || tables.integer(0) != 3)
    throw ConfigError(fmt::format("{}: an SQLite file, but not a trace; {}", path, kExpected));
  Statement version(database, "SELECT max(version) FROM schema_version");
  if (!version.next() || version.is_null(0)) throw Damage{"no schema version"};
  if (version.integer(0) > kTraceSchemaVersion)
    throw ConfigError(
        fmt::format("{}: written by a newer Peakbench: trace schema {}, this one reads "
                    "up to {}; update Peakbench",
                    path, version.integer(0), kTraceSchemaVersion));
  return version.integer(0);
}

template <class Integer>
Integer narrow(const Statement& row, int column, const char* what, std::int64_t least,
               std::int64_t most = std::numeric_limits<Integer>::max()) {
  const auto value = row.integer(column);
  if (value < least || value > most) throw Damage{fmt::format("{} {}", what, value)};
  return static_cast<Integer>(value);
}

std::int32_t index_or_none(const Statement& row, int column, const char* what, std::size_t count) {
  if (row.is_null(column)) return kNone;
  return narrow<std::int32_t>(row, column, what, 0, static_cast<std::int64_t>(count) - 1);
}

std::vector<std::string> read_words(const Database& database, const std::string& table) {
  std::vector<std::string> words;
  Statement rows(database, "SELECT id, name FROM " + table + " ORDER BY id");
  while (rows.next()) {
    if (rows.integer(0) != static_cast<std::int64_t>(words.size()))
      throw Damage{fmt::format("{} {} is missing", table, words.size())};
    words.push_back(rows.text(1));
  }
  return words;
}

Event read_event(const Statement& row, const Trace& trace) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  Event event;
  event.kind = static_cast<EventKind>(narrow<int>(row, 1, "event kind", 0, kEventKindCount - 1));
  event.phase = static_cast<Phase>(narrow<int>(row, 2, "phase", 0, kPhaseCount - 1));
  event.in_update = row.integer(3) != 0;
  event.in_recompute = row.integer(4) != 0;
  event.space =
      narrow<std::int16_t>(row, 5, "space", 0, static_cast<std::int64_t>(trace.spaces.size()) - 1);
  event.step = index_or_none(row, 6, "step", kMost);
  event.module = index_or_none(row, 7, "module", trace.modules.size());
  event.op = index_or_none(row, 8, "operator", trace.operators.size());
  event.stream = narrow<std::int32_t>(row, 9, "stream", 0);
  event.recompute = index_or_none(row, 10, "recompute", kMost);
  event.address = static_cast<std::uint64_t>(row.integer(11));
  event.requested_bytes = row.integer(12);
  event.block_bytes = row.integer(13);
  event.time_ns = row.is_null(14) ? -1 : row.integer(14);
  return event;
}

// The events [first, last) to their places.
void read_range(const Database& database, const Trace& trace, std::size_t first, std::size_t last,
                std::vector<Event>& events) {
  Statement rows(database,
                 "SELECT id, kind, phase, in_update, in_recompute, space, step, module, operator, "
                 "stream, recompute, address, requested_bytes, block_bytes, time_ns "
                 "FROM events WHERE id >= ? AND id < ? ORDER BY id");
  rows.bind(0, static_cast<std::int64_t>(first));
  rows.bind(1, static_cast<std::int64_t>(last));
  for (auto number = first; number < last; ++number) {
    if (!rows.next() || rows.integer(0) != static_cast<std::int64_t>(number))
      throw Damage{fmt::format("event {} is missing", number)};
    events[number] = read_event(rows, trace);
  }
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
  const auto most = std::filesystem::file_size(path);  // an event takes more than a byte
  if (there != count || count > most) throw Damage{fmt::format("{} events of {}", there, count)};
  std::vector<Event> events(count);
  const auto middle = count < kLong ? count : count / 2;
  auto rest = std::async(std::launch::async, [&] {
    if (middle < count) read_range(Database::open_read_only(path), trace, middle, count, events);
  });
  read_range(database, trace, 0, middle, events);
  rest.get();
  trace.events = std::move(events);
}

void read_names(const Database& database, Trace& trace) {
  Statement rows(database, "SELECT event, role, name, shape, dtype FROM names ORDER BY id");
  const auto last = static_cast<std::int64_t>(trace.events.size()) - 1;
  while (rows.next()) {
    Name name;
    name.event = narrow<std::uint64_t>(rows, 0, "named event", 0, last);
    name.role = static_cast<Role>(narrow<int>(rows, 1, "role", 0, kRoleCount - 1));
    name.name = rows.text(2);
    name.shape = rows.text(3);
    name.dtype = rows.text(4);
    trace.names.push_back(std::move(name));
  }
}

// Files of schema 1 do not name it: the first one is.
int read_own_space(const Database& database, const Trace& trace) {
  Statement head(database, "SELECT own_space FROM trace");
  head.next();
  return narrow<int>(head, 0, "own space", 0,
                     std::max<std::int64_t>(static_cast<std::int64_t>(trace.spaces.size()) - 1, 0));
}

Trace read(const Database& database, const std::string& path, std::int64_t version) {
  Trace trace;
  Statement head(database, "SELECT device, emulated, events FROM trace");
  if (!head.next()) throw Damage{"the table `trace` is empty"};
  trace.device = head.text(0);
  trace.emulated = head.integer(1) != 0;
  trace.spaces = read_words(database, "spaces");
  if (version > 1) trace.own_space = read_own_space(database, trace);
  trace.modules = read_words(database, "modules");
  trace.operators = read_words(database, "operators");
  read_events(database, path, trace, static_cast<std::size_t>(head.integer(2)));
  read_names(database, trace);
  return trace;
}

}  // namespace

Trace read_trace(const std::string& path) {
  check_header(path);
  try {
    const auto database = Database::open_read_only(path);
    const auto version = check_version(path, database);
    return read(database, path, version);
  } catch (const DatabaseError& error) {
    throw ConfigError(fmt::format("{}: damaged: {}; run the case again", path, error.what()));
  } catch (const Damage& damage) {
    throw ConfigError(fmt::format("{}: damaged: {}; run the case again", path, damage.what));
  }
}

}  // namespace peakbench::trace
