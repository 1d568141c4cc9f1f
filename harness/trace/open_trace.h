// Opens a trace.sqlite that may come from anywhere. For the room's own use.
#pragma once

#include <cstdint>
#include <string>

#include "sqlite/database.h"

namespace peakbench::trace {

// Found in the file's content, to be reported with its path.
struct Damage {
  std::string what;
};

inline constexpr int kMostTextBytes = 1 << 20;  // of a name in a trace

// Read only; whatever lies beside the file is left alone. Throws ConfigError with the path: not a
// regular file, not SQLite, cut short, changed by somebody who has not ended.
sqlite::Database open_trace(const std::string& path);

// That its schema is this program's and its tables are plain ones. Throws ConfigError for one that
// is not a trace or of another schema, Damage.
void check_schema(const std::string& path, const sqlite::Database& database);

}  // namespace peakbench::trace
