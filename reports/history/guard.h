// SQLite's failures in the words of a history's user. For the room's own use.
#pragma once

#include <string>

#include "reports/history/history.h"

namespace peakbench::history {

[[noreturn]] void explain(const std::string& path, const sqlite::DatabaseError& error);

template <class Action>
auto History::guarded(Action action) const {
  try {
    return action();
  } catch (const sqlite::DatabaseError& error) {
    explain(path_, error);
  }
}

// Writes that belong together: all of them, or none. Takes the write lock at the start, so that
// what was read inside still holds when it is written.
class Transaction {
 public:
  explicit Transaction(sqlite::Database& database) : database_(database) {
    database_.begin_work();
    database_.execute("BEGIN IMMEDIATE");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (!done_) roll_back();
  }
  void commit() {
    database_.execute("COMMIT");
    done_ = true;
  }

 private:
  void roll_back() noexcept {
    try {
      database_.execute("ROLLBACK");
    } catch (const sqlite::DatabaseError&) {
      // SQLite has rolled back by itself: disk full, an error of the disk
    }
  }
  sqlite::Database& database_;
  bool done_ = false;
};

}  // namespace peakbench::history
