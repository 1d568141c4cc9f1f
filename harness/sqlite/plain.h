// Whether a file's tables are plain: views, virtual tables, generated columns and the like run code
// that the file brings with it.
#pragma once

#include <string>
#include <vector>

#include "sqlite/database.h"

namespace peakbench::sqlite {

// A table that is going to be read.
struct Wanted {
  std::string name;
  std::vector<std::string> columns;
};

// What keeps one of these from being a plain table with these columns (others may be there) and
// without an index; empty where all are. Reads the schema only.
std::string not_plain(const Database& database, const std::vector<Wanted>& tables);

// The same for every table of the file, whatever its name and columns: ordinary columns, and
// indexes over whole columns. A view may not have one of `names`.
std::string any_not_plain(const Database& database, const std::vector<std::string>& names);

}  // namespace peakbench::sqlite
