// A database file as it looks from outside, before SQLite opens it: nothing in it is parsed,
// nothing beside it is touched.
#pragma once

#include <cstdint>
#include <string>

namespace peakbench::sqlite {

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
  // Names of files beside it that hold the unfinished work of a writer; empty where there is none.
  std::string journal, log;
};

// Never waits, throws nothing. A symbolic link is what it leads to.
FileLook look_at(const std::string& path);

}  // namespace peakbench::sqlite
