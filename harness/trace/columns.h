// Numbers in a trace.sqlite that may come from anywhere, each held to its range. For the room's own
// use.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "sqlite/database.h"
#include "trace/open_trace.h"
#include "trace/trace.h"

namespace peakbench::trace {

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

}  // namespace peakbench::trace
