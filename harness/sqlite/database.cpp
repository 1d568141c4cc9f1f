#include "sqlite/database.h"

#include <sqlite3.h>

#include <cerrno>
#include <utility>

namespace peakbench::sqlite {
namespace {

constexpr int kPrimaryCode = 0xff;  // an extended code's low byte

// The system's number behind a failure, 0 where there is none. For a full disk SQLite keeps none,
// and for a COMMIT that failed it forgets its own: then the last call's is as good.
int system_error(sqlite3* handle, int code, int last) {
  if (code == SQLITE_FULL) return ENOSPC;
  if (code == SQLITE_NOMEM) return ENOMEM;
  if (code != SQLITE_IOERR && code != SQLITE_CANTOPEN) return 0;
  if (const int kept = sqlite3_system_errno(handle); kept != 0) return kept;
  return last != 0 ? last : EIO;
}

[[noreturn]] void fail(sqlite3* handle) {
  const int last = errno;
  const int code = sqlite3_errcode(handle) & kPrimaryCode;
  throw DatabaseError(sqlite3_errmsg(handle), code, system_error(handle, code, last));
}

sqlite3* open(const std::string& path, int flags) {
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr) & kPrimaryCode;
  if (code != SQLITE_OK) {
    const int last = errno;
    const std::string message = handle ? sqlite3_errmsg(handle) : "out of memory";
    const int system = handle ? system_error(handle, code, last) : ENOMEM;
    sqlite3_close(handle);
    throw DatabaseError(message, code, system);
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

Database Database::open_read_write(const std::string& path) {
  return Database(open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
}

Database::Database(Database&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

Database::~Database() { sqlite3_close(handle_); }

void Database::execute(const std::string& statements) {
  if (sqlite3_exec(handle_, statements.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    fail(handle_);
}

void Database::wait_for_locks(int milliseconds) { sqlite3_busy_timeout(handle_, milliseconds); }

std::int64_t Database::last_row() const { return sqlite3_last_insert_rowid(handle_); }

std::int64_t Database::changes() const { return sqlite3_changes(handle_); }

void Database::close() {
  if (sqlite3_close(handle_) != SQLITE_OK) fail(handle_);
  handle_ = nullptr;
}

Statement::Statement(const Database& database, const std::string& text) {
  if (sqlite3_prepare_v2(database.handle(), text.c_str(), -1, &statement_, nullptr) != SQLITE_OK)
    fail(database.handle());
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::check(int code) const {
  if (code != SQLITE_OK) fail(sqlite3_db_handle(statement_));
}

void Statement::bind(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(statement_, parameter + 1, value));
}

void Statement::bind_number(int parameter, double value) {
  check(sqlite3_bind_double(statement_, parameter + 1, value));
}

void Statement::bind(int parameter, const std::string& value) {
  check(sqlite3_bind_text(statement_, parameter + 1, value.data(), static_cast<int>(value.size()),
                          SQLITE_STATIC));
}

void Statement::bind_blob(int parameter, const std::string& bytes) {
  check(sqlite3_bind_blob64(statement_, parameter + 1, bytes.data(), bytes.size(), SQLITE_STATIC));
}

void Statement::bind_null(int parameter) { check(sqlite3_bind_null(statement_, parameter + 1)); }

void Statement::bind_or_null(int parameter, const std::optional<std::int64_t>& value) {
  value ? bind(parameter, *value) : bind_null(parameter);
}

void Statement::bind_number_or_null(int parameter, const std::optional<double>& value) {
  value ? bind_number(parameter, *value) : bind_null(parameter);
}

void Statement::run() {
  while (next()) {
  }
  check(sqlite3_reset(statement_));
}

bool Statement::next() {
  const auto code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(sqlite3_db_handle(statement_));
  return false;
}

void Statement::reset() { check(sqlite3_reset(statement_)); }

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Statement::number(int column) const { return sqlite3_column_double(statement_, column); }

std::string Statement::text(int column) const {
  const auto* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::string Statement::blob(int column) const {
  const auto* bytes = sqlite3_column_blob(statement_, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::optional<std::int64_t> Statement::maybe_integer(int column) const {
  return is_null(column) ? std::nullopt : std::optional(integer(column));
}

std::optional<double> Statement::maybe_number(int column) const {
  return is_null(column) ? std::nullopt : std::optional(number(column));
}

}  // namespace peakbench::sqlite
