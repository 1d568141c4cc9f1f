#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/database.h"
#include "records/run.h"
#include "reports/analysis/causes.h"
#include "reports/analysis/environment.h"
#include "reports/trends/seal.h"

namespace peakbench::trends {

// Runs kept over time: one SQLite file (docs/how-to/history.md), safe with several concurrent
// writers and with a crash at any moment. Runs are ordered by when they were added, whatever their
// clocks say.
//
// The file may have any origin. If it is no history (another program's, a pipe, tables that are
// views), it is refused before anything in it is run or any file next to it is touched.
//
// Every function throws ConfigError with the file's path, the problem and what to do: locked,
// read-only, damaged, newer than this program, disk full. A failed call has changed nothing.

// Labels of a run. `verdict` is one of:
//
// - "": not judged
// - passed, regressed, failed
// - unknown: the gate could not decide
// - accepted: by a person
struct Labels {
  std::string branch, commit, verdict, note;
};

// The displayed part of a commit.
inline std::string short_commit(const Labels& labels) { return labels.commit.substr(0, 12); }

// What must be equal for two points of a series to be comparable.
using analysis::Conditions;

struct RunRow {
  std::int64_t number = 0;
  std::string added, created;  // RFC 3339, UTC: by the history's clock, by the run's
  std::string title, suite, status;
  Labels labels;
  Conditions conditions;
  std::string peakbench, schema_version;
  std::int64_t cases = 0, ok_cases = 0;
  std::int64_t stored_bytes = 0;  // the compressed record and parts

  // Passed, accepted, or not judged; and at least one case is ok.
  bool is_good() const {
    return ok_cases > 0 &&
           (labels.verdict.empty() || labels.verdict == "passed" || labels.verdict == "accepted");
  }
};

struct Filter {
  std::string branch, suite, card;  // empty: any; `card`: a part of its name
  std::string commit;               // a prefix
  std::optional<std::int64_t> number;
  bool good = false;  // as RunRow::is_good
  std::int64_t limit = -1;
};

struct Series {
  std::int64_t id = 0;
  std::string case_id, card, device_options;
  nlohmann::json axes = nlohmann::json::object();  // what the case id says, by the axes' names
  bool emulated = false;

  std::string text(const std::string& axis) const;  // empty if the axis is not set
};

struct Point {
  std::int64_t run = 0;
  std::string status;
  // How far its figures can be relied on (records/verdict.h); empty on a real card, and where the
  // run was added by a version that did not keep it.
  std::string figures;
  std::optional<std::int64_t> allocated_bytes, requested_bytes, reserved_bytes, step_ns;
  std::optional<double> samples_per_second, tokens_per_second;
  bool sound = true;  // as it was filed
};

struct Added {
  std::int64_t number = 0;
  bool is_new = true;
  std::string note;  // a clock that went backwards, labels that were not taken; else empty
};

// The card that a case ran on, as its trend is called: the emulated card with its options, the
// card's own name, or the processor's.
std::string card_of(const records::CaseResult& result, const records::Run& run);

class History {
 public:
  static constexpr int kWaitMs = 30'000;  // for other programs' locks
  // An older version is read as this one's, and stays as it is.
  static History open_to_read(const std::string& path, int wait_ms = kWaitMs);
  // Made where it is missing; an older version is brought up to this one's.
  static History open_to_write(const std::string& path, int wait_ms = kWaitMs);

  // In one transaction. A run that is there already (the same record, to the byte) stays one row.
  // Throws ConfigError for a run that has not ended, and for a case named twice.
  Added add(const records::Run& run, const std::vector<analysis::CaseParts>& parts,
            const Labels& labels);
  // Throws ConfigError where the run's labels are damaged.
  void set_verdict(std::int64_t number, const std::string& verdict, const std::string& note);
  std::size_t remove(const std::vector<std::int64_t>& numbers);  // how many there were

  std::vector<RunRow> runs(const Filter& filter) const;  // the newest first
  RunRow run(std::int64_t number) const;                 // throws ConfigError: no such run
  // Of every run that the file still knows of, whether or not it can be read; in order.
  std::vector<std::int64_t> numbers() const;

  // These throw ConfigError where the run is not as it was filed: its checksums (seal.h) differ.
  records::Run record(std::int64_t number) const;
  std::string record_json(std::int64_t number) const;  // run.json, compact
  std::vector<analysis::CaseParts> parts(std::int64_t number) const;
  std::vector<std::string> branches() const;
  // `main` where there is one, else the branch of the newest run.
  std::string default_branch() const;

  // Cases with `text` in their id (or a pattern with * and ?), on cards with `card` in their name;
  // by case id, then card.
  std::vector<Series> series(const std::string& text = "", const std::string& card = "") const;
  // In the order of adding; the last `limit` where it is not negative.
  std::vector<Point> points(std::int64_t series, const std::string& branch,
                            std::int64_t limit = -1) const;

  // Whether the run's labels are as they were filed.
  bool has_sound_labels(std::int64_t number) const;
  // What a thorough look at the file finds, one line each: runs that are damaged or cannot be read,
  // by their numbers, then what SQLite finds. Reads all of it; empty where it is sound.
  std::vector<std::string> problems() const;

  const std::string& path() const { return path_; }

 private:
  History(std::string path, sqlite::Database database)
      : path_(std::move(path)), database_(std::move(database)) {}
  static History read(const std::string& path, int wait_ms);
  template <class Action>
  auto guarded(Action action) const;
  void expect_sound(std::int64_t number, Sealed what) const;

  std::string path_;
  sqlite::Database database_;
};

// SQLite's failures in the words of a history's user. For this module alone.

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

}  // namespace peakbench::trends
