#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/database.h"

namespace peakbench::sqlite {

// Facts about a database file before SQLite opens it. Nothing in it is parsed, and no file next to
// it is touched.

struct FileLook {
  enum class Kind {
    kMissing,
    kFolder,
    kSpecial,     // a named pipe, a socket, a device: reading it may never end
    kUnreadable,  // `what`: why
    kEmpty,
    kNotSqlite,
    kDatabase,
  };
  Kind kind = Kind::kMissing;
  std::string what;  // kSpecial: "a named pipe"; kUnreadable: the system's words

  // kDatabase: of the file, and as its header has them (sqlite.org/fileformat.html).
  std::uint64_t file_bytes = 0, whole_bytes = 0;
  std::int32_t user_version = 0;
  std::uint32_t application_id = 0;
  bool write_ahead_log = false;
  bool blank = false;  // no table yet: SQLite has begun the file, and nothing more
  // Files next to it with unfinished work of a writer; empty if there are none.
  std::string journal, log;
};

// Never waits, throws nothing. A symbolic link is what it leads to.
FileLook look_at(const std::string& path);

// Whether a file's tables are plain: views, virtual tables, generated columns and the like run code
// that the file brings with it.

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
