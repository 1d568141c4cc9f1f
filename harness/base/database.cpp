#include "base/database.h"

#include <sqlite3.h>

#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/database_file.h"

namespace peakbench::sqlite {
namespace {

// An event of a trace takes about 20 operations and 50 bytes; a hundred million operations take
// about a second. Thirty times what a whole reading needs, and room for small files.
constexpr int kThousand = 1000;
constexpr std::uint64_t kOperations = 100'000'000 / kThousand, kBytesForThousandOperations = 31;
constexpr std::uint64_t kRows = 10'000, kLeastBytesOfRow = 4;
constexpr std::uint64_t kBytes = 16'000'000, kReadings = 8;

}  // namespace

// Limits on reading a file of any origin, in proportion to its size: a page that is its own child,
// or a wrong length, make a small file endless. Files written by Peakbench need a small part of the
// limits.
class Budget {
 public:
  // Of the connection `handle` to the file `path`; `handle` must not outlive it.
  Budget(sqlite3* handle, std::string path) : path_(std::move(path)) {
    renew();
    sqlite3_progress_handler(handle, kThousand, on_progress, this);
  }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // For a further piece of work; the file may have grown.
  void renew() {
    std::error_code error;
    const auto found = std::filesystem::file_size(path_, error);
    const std::uint64_t size = error ? 0 : found;
    operations_ = kOperations + size / kBytesForThousandOperations;
    rows_ = kRows + size / kLeastBytesOfRow;
    bytes_ = kBytes + size * kReadings;
  }

  // Throw DatabaseError if there is more than the file's size allows.
  void take_row(std::uint64_t rows_so_far) const {
    if (rows_so_far > rows_)
      throw DatabaseError("more rows than a file of its size can have", SQLITE_CORRUPT);
  }
  void take_bytes(std::uint64_t count) {  // of texts and blobs
    if (count > bytes_)
      throw DatabaseError("more text than a file of its size can have", SQLITE_CORRUPT);
    bytes_ -= count;
  }

  bool is_spent() const { return operations_ == 0; }

 private:
  static int on_progress(void* self) {
    auto& left = static_cast<Budget*>(self)->operations_;
    if (left > 0) --left;
    return left == 0 ? 1 : 0;
  }

  std::string path_;
  std::uint64_t operations_ = 0;  // of SQLite's virtual machine, in thousands
  std::uint64_t rows_ = 0;        // a statement
  std::uint64_t bytes_ = 0;
};

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

[[noreturn]] void fail(sqlite3* handle, const Budget* budget) {
  const int last = errno;
  const int code = sqlite3_errcode(handle) & kPrimaryCode;
  if (code == SQLITE_INTERRUPT && budget != nullptr && budget->is_spent())
    throw DatabaseError("reading it takes more work than a file of its size needs", SQLITE_CORRUPT);
  throw DatabaseError(sqlite3_errmsg(handle), code, system_error(handle, code, last));
}

// SQLite counts what it allocates, under a lock that each row takes several times; nobody here asks
// for it. Refused, and no harm, where somebody else in the process uses SQLite already.
void count_no_memory() {
  static const int refused = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  static_cast<void>(refused);
}

sqlite3* open(const std::string& path, int flags) {
  count_no_memory();
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

// SQLite would wait for who writes to a pipe, and read a device to its end.
void refuse_special(const std::string& path) {
  const auto look = look_at(path);
  using Kind = FileLook::Kind;
  if (look.kind == Kind::kSpecial) throw DatabaseError(look.what, SQLITE_CANTOPEN);
  if (look.kind == Kind::kFolder) throw DatabaseError("a folder", SQLITE_CANTOPEN);
}

void configure(sqlite3* handle, int option, int value) {
  sqlite3_db_config(handle, option, value, nullptr);
}

// sqlite.org/security.html, "Untrusted SQLite Database Files".
void distrust(sqlite3* handle) {
  configure(handle, SQLITE_DBCONFIG_DEFENSIVE, 1);
  configure(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0);
  configure(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0);
  configure(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0);
  configure(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0);
  constexpr std::array<std::array<int, 2>, 8> kLimits{{{SQLITE_LIMIT_SQL_LENGTH, 100'000},
                                                       {SQLITE_LIMIT_COLUMN, 200},
                                                       {SQLITE_LIMIT_EXPR_DEPTH, 100},
                                                       {SQLITE_LIMIT_COMPOUND_SELECT, 20},
                                                       {SQLITE_LIMIT_VDBE_OP, 25'000},
                                                       {SQLITE_LIMIT_FUNCTION_ARG, 16},
                                                       {SQLITE_LIMIT_ATTACHED, 0},
                                                       {SQLITE_LIMIT_TRIGGER_DEPTH, 1}}};
  for (const auto& [limit, value] : kLimits) sqlite3_limit(handle, limit, value);
}

// A mapped file that is cut while it is read ends in a signal.
constexpr const char* kCareful = "PRAGMA mmap_size = 0; PRAGMA ignore_check_constraints = ON";

// As a URI: a path may hold what has a meaning there.
std::string uri_of(const std::string& path, const std::string& query) {
  std::error_code ignored;
  const auto absolute = std::filesystem::absolute(path, ignored).string();
  std::string uri = "file://";
  for (const char c : absolute.empty() ? path : absolute) {
    const auto byte = static_cast<unsigned char>(c);
    constexpr const char* kDigits = "0123456789ABCDEF";
    if (std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_') {
      uri += c;
    } else {
      uri += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return uri + "?" + query;
}

const char* name_of_type(int type) {
  switch (type) {
    case SQLITE_INTEGER:
      return "an integer";
    case SQLITE_FLOAT:
      return "a fraction";
    case SQLITE_TEXT:
      return "a text";
    case SQLITE_BLOB:
      return "a blob";
    default:
      return "nothing";
  }
}

}  // namespace

bool DatabaseError::is_too_long() const { return code == SQLITE_TOOBIG; }

Database::Database(sqlite3* handle) : handle_(handle) {}

Database Database::create(const std::string& path) {
  Database database(open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  // The file is renamed into place when it is whole: a journal would only cost.
  database.execute(
      "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
      "PRAGMA locking_mode = EXCLUSIVE;");
  return database;
}

Database Database::guarded(const std::string& path, int flags) {
  refuse_special(path);
  const bool uri = (flags & SQLITE_OPEN_URI) != 0;
  Database database(open(uri ? uri_of(path, "immutable=1") : path, flags));
  distrust(database.handle_);
  database.budget_ = std::make_unique<Budget>(database.handle_, path);
  database.execute(kCareful);
  return database;
}

Database Database::open_read_only(const std::string& path) {
  return guarded(path, SQLITE_OPEN_READONLY);
}

Database Database::open_finished(const std::string& path) {
  return guarded(path, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

Database Database::open_read_write(const std::string& path) {
  return guarded(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

Database Database::copy_of(const Database& other, const std::string& path) {
  Database copy(open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  auto* backup = sqlite3_backup_init(copy.handle_, "main", other.handle_, "main");
  if (backup == nullptr) fail(copy.handle_, nullptr);
  const int done = sqlite3_backup_step(backup, -1) & kPrimaryCode;
  sqlite3_backup_finish(backup);
  if (done != SQLITE_DONE) throw DatabaseError(sqlite3_errstr(done), done);
  distrust(copy.handle_);
  copy.budget_ = std::make_unique<Budget>(copy.handle_, path);
  return copy;
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), budget_(std::move(other.budget_)) {}

Database::~Database() { sqlite3_close(handle_); }

void Database::execute(const std::string& statements) {
  if (sqlite3_exec(handle_, statements.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    fail(handle_, budget_.get());
}

void Database::wait_for_locks(int milliseconds) { sqlite3_busy_timeout(handle_, milliseconds); }

void Database::limit_length(int bytes) { sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, bytes); }

void Database::begin_work() const {
  if (budget_) budget_->renew();
}

std::int64_t Database::last_row() const { return sqlite3_last_insert_rowid(handle_); }

std::int64_t Database::changes() const { return sqlite3_changes(handle_); }

void Database::close() {
  if (sqlite3_close(handle_) != SQLITE_OK) fail(handle_, nullptr);
  handle_ = nullptr;
}

Statement::Statement(const Database& database, const std::string& text)
    : budget_(database.budget()) {
  if (sqlite3_prepare_v2(database.handle(), text.c_str(), -1, &statement_, nullptr) != SQLITE_OK)
    fail(database.handle(), budget_);
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::check(int code) const {
  if (code != SQLITE_OK) fail(sqlite3_db_handle(statement_), budget_);
}

void Statement::bind(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(statement_, parameter + 1, value));
}

void Statement::bind(int parameter, double value) {
  check(sqlite3_bind_double(statement_, parameter + 1, value));
}

void Statement::bind(int parameter, const std::string& value) {
  check(sqlite3_bind_text(statement_, parameter + 1, value.data(), static_cast<int>(value.size()),
                          SQLITE_STATIC));
}

void Statement::bind(int parameter, Blob value) {
  check(sqlite3_bind_blob64(statement_, parameter + 1, value.bytes.data(), value.bytes.size(),
                            SQLITE_STATIC));
}

void Statement::bind(int parameter, std::nullopt_t) {
  check(sqlite3_bind_null(statement_, parameter + 1));
}

void Statement::run() {
  while (next()) {
  }
  reset();
}

bool Statement::next() {
  const auto code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) {
    if (budget_ != nullptr) budget_->take_row(++rows_);
    return true;
  }
  if (code != SQLITE_DONE) fail(sqlite3_db_handle(statement_), budget_);
  return false;
}

void Statement::reset() {
  rows_ = 0;
  check(sqlite3_reset(statement_));
}

void Statement::expect(int column, int type) const {
  const int found = sqlite3_column_type(statement_, column);
  if (found != type) refuse(column, found, type);
}

void Statement::refuse(int column, int found, int type) const {
  throw DatabaseError(std::string(sqlite3_column_name(statement_, column)) + " holds " +
                          name_of_type(found) + ", not " + name_of_type(type),
                      SQLITE_MISMATCH);
}

std::int64_t Statement::integer(int column) const {
  expect(column, SQLITE_INTEGER);
  return sqlite3_column_int64(statement_, column);
}

// One look at a column gives type and value. The connection is this thread's alone, which is what
// an unprotected value asks for.
void Statement::integers(std::int64_t* places, std::uint32_t nullable, std::int64_t null) const {
  const int columns = sqlite3_column_count(statement_);
  for (int column = 0; column < columns; ++column) {
    auto* value = sqlite3_column_value(statement_, column);
    const int found = sqlite3_value_type(value);
    if (found == SQLITE_INTEGER) {
      places[column] = sqlite3_value_int64(value);
    } else if (found == SQLITE_NULL && (nullable >> column & 1U) != 0) {
      places[column] = null;
    } else {
      refuse(column, found, SQLITE_INTEGER);
    }
  }
}

double Statement::number(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_INTEGER) expect(column, SQLITE_FLOAT);
  return sqlite3_column_double(statement_, column);
}

std::string Statement::bytes(const void* bytes, int column) const {
  const auto count = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  if (bytes == nullptr && count > 0) fail(sqlite3_db_handle(statement_), budget_);
  if (budget_ != nullptr) budget_->take_bytes(count);
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), count);
}

std::string Statement::text(int column) const {
  expect(column, SQLITE_TEXT);
  return bytes(sqlite3_column_text(statement_, column), column);
}

std::string Statement::blob(int column) const {
  expect(column, SQLITE_BLOB);
  return bytes(sqlite3_column_blob(statement_, column), column);
}

std::string Statement::row_bytes(int columns) const {
  std::string bytes;
  const auto add = [&](std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 0xFFU);
  };
  const int all = sqlite3_column_count(statement_);
  for (int column = 0; column < (columns < 0 ? all : columns); ++column) {
    const int type = sqlite3_column_type(statement_, column);
    bytes += static_cast<char>(type);
    if (type == SQLITE_INTEGER) add(static_cast<std::uint64_t>(integer(column)));
    if (type == SQLITE_FLOAT) add(std::bit_cast<std::uint64_t>(number(column)));
    if (type != SQLITE_TEXT && type != SQLITE_BLOB) continue;
    const auto value = type == SQLITE_TEXT ? text(column) : blob(column);
    add(value.size());
    bytes += value;
  }
  return bytes;
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
