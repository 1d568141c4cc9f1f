#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

struct sqlite3;
struct sqlite3_stmt;

namespace peakbench::sqlite {

class Budget;

// SQLite with two small owning classes. Traces and histories are stored in it.
//
// A file may have any origin. Opening accepts only regular files (look_at() describes others). It
// runs no code of the file (views, triggers, functions in its schema), maps no memory, and does no
// more work than a file of its size needs (database.cpp). Every column is read as its declared
// type.

// SQLite's error; the callers add the path and what to do.
struct DatabaseError : std::runtime_error {
  // `code`: SQLite's primary result code (SQLITE_BUSY, SQLITE_CORRUPT, ...). `system`: the system's
  // error number behind it, or 0.
  explicit DatabaseError(const std::string& message, int code = 1, int system = 0)
      : std::runtime_error(message), code(code), system(system) {}
  bool is_too_long() const;  // a text, a blob or a row
  int code, system;
};

class Database {
 public:
  static Database create(const std::string& path);  // empty; no journal, nothing waits for the disk
  static Database open_read_only(const std::string& path);
  // A file without writers: read without locks, and without touching the files next to it. So it
  // may be in a folder or on a medium that cannot be written.
  static Database open_finished(const std::string& path);
  static Database open_read_write(const std::string& path);  // made where it is missing
  // What another connection reads, in memory: to be changed without a change of the file.
  static Database copy_of(const Database& other, const std::string& path);
  ~Database();
  Database(Database&& other) noexcept;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  Database& operator=(Database&&) = delete;

  void execute(const std::string& statements);
  // How long a statement waits for another program's lock before it fails with SQLITE_BUSY.
  void wait_for_locks(int milliseconds);
  // No row, text, blob or statement may be longer: DatabaseError with SQLITE_TOOBIG.
  void limit_length(int bytes);
  void begin_work() const;        // what may be asked of the file is counted anew
  std::int64_t last_row() const;  // the row that the last INSERT made
  std::int64_t changes() const;   // rows that the last statement changed
  void close();                   // with an error where closing fails
  sqlite3* handle() const { return handle_; }
  Budget* budget() const { return budget_.get(); }  // none for one's own files

 private:
  explicit Database(sqlite3* handle);
  static Database guarded(const std::string& path, int flags);
  sqlite3* handle_;
  std::unique_ptr<Budget> budget_;
};

// Of a parameter that is a blob.
struct Blob {
  const std::string& bytes;
};

// One prepared statement. Parameters and columns count from 0, in the order of the text.
class Statement {
 public:
  Statement(const Database& database, const std::string& text);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Texts and blobs must live until the next run.
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, double value);
  void bind(int parameter, const std::string& value);
  void bind(int parameter, const char* value) = delete;
  void bind(int parameter, Blob value);
  void bind(int parameter, std::nullopt_t null);
  template <class Value>
  requires std::integral<Value> || std::is_enum_v<Value>
  void bind(int parameter, Value value) { bind(parameter, static_cast<std::int64_t>(value)); }
  template <class Value>
  void bind(int parameter, const std::optional<Value>& value) {
    value ? bind(parameter, *value) : bind(parameter, std::nullopt);
  }
  template <class... Values>
  void bind_all(const Values&... values) {
    int parameter = 0;
    (bind(parameter++, values), ...);
  }
  void run();  // to its end, and ready for new values
  template <class First, class... Others>
  void run(const First& first, const Others&... others) {
    bind_all(first, others...);
    run();
  }
  bool next();   // the next row; false at the end
  void reset();  // ready for new values before the end

  // Of the row. Throw DatabaseError with SQLITE_MISMATCH where the column holds another type:
  // SQLite itself would hand out 0 for a text, and a text for a blob.
  std::int64_t integer(int column) const;
  double number(int column) const;  // an integer is one too
  std::string text(int column) const;
  std::string blob(int column) const;
  bool is_null(int column) const;
  // Every column at once, which millions of rows need: as integers, into as many places as there
  // are columns. Where one of the columns in `nullable` (a bit each) is NULL, its place gets
  // `null`.
  void integers(std::int64_t* places, std::uint32_t nullable, std::int64_t null) const;
  // The first `columns` of the row (-1: all), values with their types, for a checksum: the same
  // row, the same bytes, whatever machine.
  std::string row_bytes(int columns = -1) const;
  std::optional<std::int64_t> maybe_integer(int column) const;
  std::optional<double> maybe_number(int column) const;

 private:
  void check(int code) const;
  void expect(int column, int type) const;
  [[noreturn]] void refuse(int column, int found, int type) const;
  std::string bytes(const void* bytes, int column) const;
  sqlite3_stmt* statement_ = nullptr;
  Budget* budget_;
  std::uint64_t rows_ = 0;  // since it was made ready
};

}  // namespace peakbench::sqlite
