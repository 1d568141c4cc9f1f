#include "trace/database.h"

#include <sqlite3.h>

#include <utility>

namespace peakbench::trace {
namespace {

sqlite3* open(const std::string& path, int flags) {
  sqlite3* handle = nullptr;
  if (sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK) {
    const std::string message = handle ? sqlite3_errmsg(handle) : "out of memory";
    sqlite3_close(handle);
    throw DatabaseError(message);
  }
  return handle;
}

}  // namespace

Database Database::create(const std::string& path) {
  Database database(open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  // The file is renamed into place when it is whole: a journal would only cost.
  database.execute(
      "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
      "PRAGMA locking_mode = EXCLUSIVE;");
  return database;
}

Database Database::open_read_only(const std::string& path) {
  return Database(open(path, SQLITE_OPEN_READONLY));
}

Database::Database(Database&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

Database::~Database() { sqlite3_close(handle_); }

void Database::execute(const std::string& statements) {
  if (sqlite3_exec(handle_, statements.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    throw DatabaseError(sqlite3_errmsg(handle_));
}

void Database::close() {
  if (sqlite3_close(handle_) != SQLITE_OK) throw DatabaseError(sqlite3_errmsg(handle_));
  handle_ = nullptr;
}

Statement::Statement(const Database& database, const std::string& text) {
  if (sqlite3_prepare_v2(database.handle(), text.c_str(), -1, &statement_, nullptr) != SQLITE_OK)
    throw DatabaseError(sqlite3_errmsg(database.handle()));
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::check(int code) const {
  if (code != SQLITE_OK) throw DatabaseError(sqlite3_errmsg(sqlite3_db_handle(statement_)));
}

void Statement::bind(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(statement_, parameter + 1, value));
}

void Statement::bind(int parameter, const std::string& value) {
  check(sqlite3_bind_text(statement_, parameter + 1, value.data(), static_cast<int>(value.size()),
                          SQLITE_STATIC));
}

void Statement::bind_null(int parameter) { check(sqlite3_bind_null(statement_, parameter + 1)); }

void Statement::run() {
  while (next()) {
  }
  check(sqlite3_reset(statement_));
}

bool Statement::next() {
  const auto code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) throw DatabaseError(sqlite3_errmsg(sqlite3_db_handle(statement_)));
  return false;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string Statement::text(int column) const {
  const auto* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

}  // namespace peakbench::trace
