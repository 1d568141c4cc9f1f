#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/database.h"
#include "records/setting.h"

namespace peakbench::trends {

// Texts in the history file: zlib's format, which Python, Perl and the rest can read as well.

inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;  // of a text

std::string pack(std::string_view text);
// `bytes`: how long the text was. Throws ConfigError where it is not what was packed.
std::string unpack(const std::string& packed, std::int64_t bytes);

// CRC-32: finds texts that may be the same (only the texts themselves say that they are), and texts
// that are no longer what they were.
std::int64_t checksum(std::string_view text);

// The tables of a history file. Documented in docs/how-to/history.md.

// PRAGMA user_version: one more for each change. A file of another version is refused.
inline constexpr std::int64_t kHistoryVersion = 7;
// PRAGMA application_id, "PkBn": what tells a history from any other SQLite file.
inline constexpr std::int64_t kApplicationId = 0x506b426e;

std::int64_t version_of(const sqlite::Database& database);
std::int64_t application_of(const sqlite::Database& database);

// Names of our tables; a file may contain other views and tables.
const std::vector<std::string>& table_names();

// In an empty file, within the caller's transaction.
void make_tables(sqlite::Database& database);

// The axes of a series as data: a JSON object by the axes' names, so that a new axis needs no new
// column. For this module alone.

// What the case id says of each axis; integers as numbers: {"batch_size":1,"device":"cpu",...}.
std::string axes_text(const records::Setting& setting);
// Of the text with the case that it belongs to.
std::int64_t axes_sum(const std::string& case_id, const std::string& text);
// {} where they are not as they were filed.
nlohmann::json axes_from(const std::string& case_id, const std::string& text, std::int64_t sum);

}  // namespace peakbench::trends
