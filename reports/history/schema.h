// The tables of a history file. Documented in docs/how-to/history.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sqlite/database.h"

namespace peakbench::history {

// PRAGMA user_version: one more for each change. A file of another version is refused.
inline constexpr std::int64_t kHistoryVersion = 7;
// PRAGMA application_id, "PkBn": what tells a history from any other SQLite file.
inline constexpr std::int64_t kApplicationId = 0x506b426e;

std::int64_t version_of(const sqlite::Database& database);
std::int64_t application_of(const sqlite::Database& database);

// A file's own views and tables may lie beside them.
const std::vector<std::string>& table_names();

// In an empty file, within the caller's transaction.
void make_tables(sqlite::Database& database);

}  // namespace peakbench::history
