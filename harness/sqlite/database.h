// SQLite behind two small owners: what a trace and a history are stored in.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace peakbench::sqlite {

// What SQLite said; the callers add the path and what to do.
struct DatabaseError : std::runtime_error {
  // `code`: SQLite's primary result code (SQLITE_BUSY, SQLITE_CORRUPT, ...). `system`: the system's
  // error number behind it, 0 where there is none.
  explicit DatabaseError(const std::string& message, int code = 1, int system = 0)
      : std::runtime_error(message), code(code), system(system) {}
  int code, system;
};

class Database {
 public:
  static Database create(const std::string& path);  // empty; no journal, nothing waits for the disk
  static Database open_read_only(const std::string& path);
  static Database open_read_write(const std::string& path);  // made where it is missing
  ~Database();
  Database(Database&& other) noexcept;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  Database& operator=(Database&&) = delete;

  void execute(const std::string& statements);
  // How long a statement waits for another program's lock before it fails with SQLITE_BUSY.
  void wait_for_locks(int milliseconds);
  std::int64_t last_row() const;  // the row that the last INSERT made
  std::int64_t changes() const;   // rows that the last statement changed
  void close();                   // with an error where closing fails
  sqlite3* handle() const { return handle_; }

 private:
  explicit Database(sqlite3* handle) : handle_(handle) {}
  sqlite3* handle_;
};

// One prepared statement. Parameters and columns count from 0, in the order of the text.
class Statement {
 public:
  Statement(const Database& database, const std::string& text);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int parameter, std::int64_t value);
  void bind(int parameter, const std::string& value);  // must live until the next run
  void bind(int parameter, const char* value) = delete;
  void bind_blob(int parameter, const std::string& bytes);  // must live until the next run
  void bind_number(int parameter, double value);
  void bind_null(int parameter);
  void bind_or_null(int parameter, const std::optional<std::int64_t>& value);
  void bind_number_or_null(int parameter, const std::optional<double>& value);
  void run();    // to its end, and ready for new values
  bool next();   // the next row; false at the end
  void reset();  // ready for new values before the end

  std::int64_t integer(int column) const;
  double number(int column) const;
  std::string text(int column) const;
  std::string blob(int column) const;
  bool is_null(int column) const;
  std::optional<std::int64_t> maybe_integer(int column) const;
  std::optional<double> maybe_number(int column) const;

 private:
  void check(int code) const;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace peakbench::sqlite
