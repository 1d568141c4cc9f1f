#include "base/database_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/regular_file.h"

namespace peakbench::sqlite {
namespace {

using Kind = FileLook::Kind;
// And the head of the first page behind it, which holds the schema.
using Header = std::array<unsigned char, 108>;

std::string beside(const std::string& path, const char* suffix) {
  struct stat status {};
  const auto name = path + suffix;
  return lstat(name.c_str(), &status) == 0 && status.st_size > 0 ? name : "";
}

// Big-endian, as everything in the header.
std::uint64_t number(const Header& header, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = at; i < at + count; ++i) value = value << 8U | header.at(i);
  return value;
}

void read_header(const Header& header, FileLook& look) {
  const auto stored = number(header, 16, 2);
  const auto page_bytes = stored == 1 ? 65536 : stored;
  look.kind = Kind::kDatabase;
  look.whole_bytes = page_bytes * number(header, 28, 4);
  look.user_version = static_cast<std::int32_t>(number(header, 60, 4));
  look.application_id = static_cast<std::uint32_t>(number(header, 68, 4));
  constexpr unsigned char kLeafOfTable = 13;
  look.blank = header[100] == kLeafOfTable && number(header, 103, 2) == 0;
  look.write_ahead_log = header[18] == 2 || header[19] == 2;
}

void read_content(const files::RegularFile& file, FileLook& look) {
  look.file_bytes = file.size();
  Header header{};
  const auto got =
      file.read_at(0, reinterpret_cast<char*>(header.data()), header.size());  // may be fewer
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  look.kind = got == 0 ? Kind::kEmpty : Kind::kNotSqlite;
  if (std::memcmp(header.data(), kMagic.data(), kMagic.size()) == 0) read_header(header, look);
}

void note_unreadable(int error, FileLook& look) {
  if (error == ENOENT || error == ENOTDIR) return;
  look.kind = Kind::kUnreadable;
  look.what = std::strerror(error);
}

}  // namespace

FileLook look_at(const std::string& path) {
  FileLook look;
  if (const auto other = files::why_no_file(path); !other.empty()) {
    look.kind = other == "a folder" ? Kind::kFolder : Kind::kSpecial;
    if (look.kind == Kind::kSpecial) look.what = other;
    return look;
  }
  // Not waiting: what was a file a moment ago may be a pipe now.
  const files::RegularFile file(path);
  if (!file.is_open()) {
    note_unreadable(file.error() != 0 ? file.error() : EINVAL, look);
    return look;
  }
  try {
    read_content(file, look);
  } catch (const std::system_error& error) {
    note_unreadable(error.code().value(), look);
  }
  look.journal = beside(path, "-journal");
  look.log = beside(path, "-wal");
  return look;
}

namespace {

struct Object {
  std::string type, sql;
};
using Objects = std::map<std::string, Object>;  // tables and views by name

// SQLite holds a row's type and name against its SQL when it reads the schema.
Objects objects_of(const Database& database) {
  Objects objects;
  Statement rows(database,
                 "SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view') AND "
                 "sql IS NOT NULL");
  while (rows.next()) objects[rows.text(0)] = {rows.text(1), rows.text(2)};
  return objects;
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

std::string kind_problem(const std::string& name, const Object& object) {
  if (object.type == "view") return name + " is a view, not a table";
  // As SQLite itself writes it down; it would read VIRTUAL in any case and behind a comment, too.
  if (!object.sql.starts_with("CREATE TABLE ")) return name + " is a virtual table";
  return "";
}

struct Columns {
  std::vector<std::string> names;
  std::string problem;
};

Columns columns_of(const Database& database, const std::string& table) {
  constexpr int kName = 1, kHidden = 6;
  Columns columns;
  Statement rows(database, "PRAGMA table_xinfo(" + quoted(table) + ")");
  while (rows.next()) {
    columns.names.push_back(rows.text(kName));
    if (rows.integer(kHidden) != 0)
      columns.problem = table + " has a generated column, " + columns.names.back();
  }
  return columns;
}

bool is_over_whole_columns(const Database& database, const std::string& index) {
  constexpr int kColumn = 1;
  constexpr std::int64_t kExpression = -2;
  Statement rows(database, "PRAGMA index_xinfo(" + quoted(index) + ")");
  while (rows.next())
    if (rows.integer(kColumn) == kExpression) return false;
  return true;
}

// "" where all are plain ones; where `none` is wished, there may be none.
std::string index_problem(const Database& database, const std::string& table, bool none) {
  constexpr int kName = 1, kPartial = 4;
  std::vector<std::pair<std::string, bool>> indexes;
  {
    Statement rows(database, "PRAGMA index_list(" + quoted(table) + ")");
    while (rows.next()) indexes.emplace_back(rows.text(kName), rows.integer(kPartial) != 0);
  }
  for (const auto& [name, partial] : indexes) {
    if (none) return table + " has an index, " + name;
    if (partial || !is_over_whole_columns(database, name))
      return table + " has an index over an expression or a part of its rows, " + name;
  }
  return "";
}

}  // namespace

std::string not_plain(const Database& database, const std::vector<Wanted>& tables) {
  const auto objects = objects_of(database);
  for (const auto& [name, wanted] : tables) {
    const auto found = objects.find(name);
    if (found == objects.end()) return "no such table: " + name;
    if (const auto problem = kind_problem(name, found->second); !problem.empty()) return problem;
    const auto [columns, problem] = columns_of(database, name);
    if (!problem.empty()) return problem;
    for (const auto& column : wanted)
      if (std::find(columns.begin(), columns.end(), column) == columns.end())
        return name + " has no column " + column;
    if (const auto index = index_problem(database, name, true); !index.empty()) return index;
  }
  return "";
}

std::string any_not_plain(const Database& database, const std::vector<std::string>& names) {
  for (const auto& [name, object] : objects_of(database)) {
    const bool ours = std::find(names.begin(), names.end(), name) != names.end();
    if (object.type == "view" && !ours) continue;  // of a person's own; never read
    if (const auto problem = kind_problem(name, object); !problem.empty()) return problem;
    if (const auto problem = columns_of(database, name).problem; !problem.empty()) return problem;
    if (const auto index = index_problem(database, name, false); !index.empty()) return index;
  }
  return "";
}

}  // namespace peakbench::sqlite
