#include "sqlite/plain.h"

#include <algorithm>
#include <map>

namespace peakbench::sqlite {
namespace {

struct Object {
  std::string type, sql;
};
using Objects = std::map<std::string, Object>;  // tables and views by name

bool begins(const std::string& text, const std::string& beginning) {
  return text.compare(0, beginning.size(), beginning) == 0;
}

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
  if (!begins(object.sql, "CREATE TABLE ")) return name + " is a virtual table";
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
