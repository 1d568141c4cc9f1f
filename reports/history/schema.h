// The tables of a history file and how an older file becomes a newer one. Documented in
// docs/history.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sqlite/database.h"

namespace peakbench::history {

// PRAGMA user_version: one more for each migration. A newer file is refused.
inline constexpr std::int64_t kHistoryVersion = 6;
// PRAGMA application_id, "PkBn": what tells a history from any other SQLite file.
inline constexpr std::int64_t kApplicationId = 0x506b426e;

std::int64_t version_of(const sqlite::Database& database);
std::int64_t application_of(const sqlite::Database& database);

// The tables of any version; a file's own views and tables may lie beside them.
const std::vector<std::string>& table_names();

// From the version that the file has up to `version`; version 0 is an empty file. Within the
// caller's transaction: a crash leaves the old version, whole.
void migrate(sqlite::Database& database, std::int64_t version = kHistoryVersion);
// The same of a copy that is only read: nothing of the runs is computed.
void migrate_copy(sqlite::Database& database);

}  // namespace peakbench::history
