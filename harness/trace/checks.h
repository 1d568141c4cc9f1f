#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/database.h"
#include "trace/trace.h"

namespace peakbench::trace {

// Opens a trace.sqlite that may come from anywhere. For the module's own use.

// Found in the file's content, to be reported with its path.
struct Damage {
  std::string what;
};

inline constexpr int kMostTextBytes = 1 << 20;  // of a name in a trace

// Opens it read-only, and does not touch files next to it. Throws ConfigError with the path: not a
// regular file, not SQLite, cut short, being written by another process.
sqlite::Database open_trace(const std::string& path);

// That its schema is this program's and its tables are plain ones. Throws ConfigError for one that
// is not a trace or of another schema, Damage.
void check_schema(const std::string& path, const sqlite::Database& database);

// Range checks of the numbers in a trace.sqlite of any origin. For the module's own use.

// More than any trace has; beyond them a file is damaged, or made to be.
inline constexpr std::size_t kMostSpaces = 64;  // each is looked at by itself
inline constexpr std::size_t kMostWords = 1'000'000;
inline constexpr std::int64_t kMostSteps = 1'000'000'000;
inline constexpr std::int64_t kMostEvents =
    std::numeric_limits<std::int32_t>::max();  // indices are of that width

// What sqlite::Statement::integers gives for NULL.
inline constexpr std::int64_t kNull = std::numeric_limits<std::int64_t>::min();

// All throw Damage.
template <class Integer>
Integer narrow(std::int64_t value, const char* what, std::int64_t least,
               std::int64_t most = std::numeric_limits<Integer>::max()) {
  if (value < least || value > most) throw Damage{fmt::format("{} {}", what, value)};
  return static_cast<Integer>(value);
}

template <class Integer>
Integer narrow(const sqlite::Statement& row, int column, const char* what, std::int64_t least,
               std::int64_t most = std::numeric_limits<Integer>::max()) {
  return narrow<Integer>(row.integer(column), what, least, most);
}

inline std::int32_t index_or_none(std::int64_t value, const char* what, std::size_t count) {
  return value == kNull
             ? kNone
             : narrow<std::int32_t>(value, what, 0, static_cast<std::int64_t>(count) - 1);
}

// Rows are numbered from 0, without gaps.
inline void expect_number(std::int64_t id, std::size_t number, const char* what) {
  if (id != static_cast<std::int64_t>(number))
    throw Damage{fmt::format("{} {} is missing", what, number)};
}

// What must be right of a trace's events and scopes together, wherever they come from. For the
// module's own use.

// Of consecutive events. Throws Damage.
class EventChecks {
 public:
  void add(const Event& event);
  void append(const EventChecks& next);  // of the events that follow

 private:
  void count_bytes(std::int64_t count);
  void follow(std::int32_t first, std::int32_t last);

  std::int64_t bytes_ = 0;
  std::int32_t first_step_ = kNone, last_step_ = kNone;
};

// Of all scopes, in their order. Throws Damage.
class ScopeChecks {
 public:
  void add(const ScopeMark& mark);

 private:
  std::uint64_t event_ = 0;
  std::int32_t step_ = kNone;
  std::map<std::pair<std::int32_t, ScopeKind>, std::int64_t> open_;
};

}  // namespace peakbench::trace
