// SQLite behind two small owners. For the room's own use.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace peakbench::trace {

// What SQLite said; the callers add the path and what to do.
struct DatabaseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Database {
 public:
  static Database create(const std::string& path);  // empty; no journal, nothing waits for the disk
  static Database open_read_only(const std::string& path);
  ~Database();
  Database(Database&& other) noexcept;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  Database& operator=(Database&&) = delete;

  void execute(const std::string& statements);
  void close();  // with an error where closing fails
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
  void bind_null(int parameter);
  void run();   // to its end, and ready for new values
  bool next();  // the next row; false at the end

  std::int64_t integer(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;

 private:
  void check(int code) const;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace peakbench::trace
