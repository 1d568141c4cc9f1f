#include "reports/history/schema.h"

#include <fmt/chrono.h>

#include <array>
#include <ctime>
#include <string>

#include "reports/history/seal.h"
#include "reports/history/series_axes.h"

namespace peakbench::history {
namespace {

using sqlite::Database;
using sqlite::Statement;

// What is asked often is a column; the whole record lies beside it, compressed (records). A series
// is what a trend joins: one case on one card with one set of device options. The primary key of
// `cases` keeps a series' points together in the order of adding, so that a trend reads one stretch
// of the file.
constexpr const char* kFirst = R"sql(
CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  added TEXT NOT NULL,
  created TEXT NOT NULL,
  title TEXT NOT NULL,
  suite TEXT NOT NULL,
  status TEXT NOT NULL,
  branch TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  libtorch TEXT NOT NULL,
  libtorch_git_version TEXT NOT NULL,
  libtorch_cuda TEXT NOT NULL,
  driver TEXT NOT NULL,
  steps INTEGER NOT NULL,
  peakbench TEXT NOT NULL,
  schema_version TEXT NOT NULL,
  cases INTEGER NOT NULL,
  ok_cases INTEGER NOT NULL,
  checksum INTEGER NOT NULL
);
CREATE INDEX runs_by_branch ON runs (branch, id);
CREATE INDEX runs_by_commit ON runs (commit_id);
CREATE INDEX runs_by_checksum ON runs (checksum);
CREATE TABLE series (
  id INTEGER PRIMARY KEY,
  case_id TEXT NOT NULL,
  card TEXT NOT NULL,
  device_options TEXT NOT NULL,
  model TEXT NOT NULL,
  strategy TEXT NOT NULL,
  device TEXT NOT NULL,
  dtype TEXT NOT NULL,
  batch_size INTEGER NOT NULL,
  sequence_length INTEGER,
  emulated INTEGER NOT NULL,
  UNIQUE (case_id, card, device_options)
);
CREATE TABLE cases (
  series INTEGER NOT NULL,
  run INTEGER NOT NULL,
  status TEXT NOT NULL,
  peak_allocated_bytes INTEGER,
  peak_requested_bytes INTEGER,
  peak_reserved_bytes INTEGER,
  peak_phase TEXT,
  step_ns INTEGER,
  samples_per_second REAL,
  tokens_per_second REAL,
  PRIMARY KEY (series, run)
) WITHOUT ROWID;
CREATE INDEX cases_by_run ON cases (run);
CREATE TABLE records (
  run INTEGER PRIMARY KEY,
  run_json BLOB NOT NULL,
  run_json_bytes INTEGER NOT NULL,
  parts BLOB,
  parts_bytes INTEGER
);
)sql";

constexpr const char* kSecond = R"sql(
ALTER TABLE runs ADD COLUMN verdict TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT '';
)sql";

// Parts are the same night after night on an emulated card: equal ones are kept once.
constexpr const char* kThird = R"sql(
CREATE TABLE parts (
  id INTEGER PRIMARY KEY,
  checksum INTEGER NOT NULL,
  packed BLOB NOT NULL,
  bytes INTEGER NOT NULL
);
INSERT INTO parts SELECT run, 0, parts, parts_bytes FROM records WHERE parts IS NOT NULL;
ALTER TABLE records ADD COLUMN parts_id INTEGER;
UPDATE records SET parts_id = run WHERE parts IS NOT NULL;
ALTER TABLE records DROP COLUMN parts;
ALTER TABLE records DROP COLUMN parts_bytes;
CREATE INDEX parts_by_checksum ON parts (checksum);
CREATE INDEX records_by_parts ON records (parts_id);
)sql";

// Checksums of what a run consists of (seal.h), of its figures beside each. `since` is empty for a
// run that was filed with them.
constexpr const char* kFourth = R"sql(
CREATE TABLE seals (
  run INTEGER PRIMARY KEY,
  row INTEGER NOT NULL,
  record INTEGER NOT NULL,
  since TEXT NOT NULL
);
ALTER TABLE cases ADD COLUMN sum INTEGER;
)sql";
constexpr std::int64_t kSealed = 4;  // the version that has them

// The axes of the series' cases (series_axes.h). The columns that some of them have of before stay:
// the checksums of points are over them.
constexpr const char* kFifth = R"sql(
ALTER TABLE series ADD COLUMN axes TEXT NOT NULL DEFAULT '{}';
ALTER TABLE series ADD COLUMN axes_sum INTEGER NOT NULL DEFAULT -1;
)sql";
constexpr std::int64_t kWithAxes = 5;  // the version that has them

// How far the figures of a case on an emulated card can be relied on: a word of run.json. Empty on
// a real card, and in runs that were added before this version.
constexpr const char* kSixth = R"sql(
ALTER TABLE cases ADD COLUMN figures TEXT NOT NULL DEFAULT '';
)sql";

constexpr std::array<const char*, kHistoryVersion> kMigrations{kFirst,  kSecond, kThird,
                                                               kFourth, kFifth,  kSixth};

constexpr const char* kDropViews = "DROP VIEW IF EXISTS changes; DROP VIEW IF EXISTS results;";

// For people's own questions: every point with everything known of it, and the same beside its
// predecessor in the series and branch.
constexpr const char* kViews = R"sql(
CREATE VIEW results AS
SELECT runs.id AS run, runs.created, runs.added, runs.branch, runs.commit_id, runs.suite,
  runs.verdict, series.case_id, series.card, series.model, series.strategy, series.device,
  series.device_options, series.dtype, series.batch_size, series.sequence_length, series.emulated,
  series.axes,
  cases.status, cases.peak_allocated_bytes, cases.peak_requested_bytes, cases.peak_reserved_bytes,
  cases.peak_phase, cases.step_ns, cases.samples_per_second, cases.tokens_per_second,
  cases.figures, runs.libtorch, runs.libtorch_cuda, runs.driver, runs.peakbench, cases.series
FROM cases JOIN runs ON runs.id = cases.run JOIN series ON series.id = cases.series;
CREATE VIEW changes AS
SELECT *,
  peak_allocated_bytes - lag(peak_allocated_bytes) OVER before AS allocated_change_bytes,
  peak_requested_bytes - lag(peak_requested_bytes) OVER before AS requested_change_bytes,
  step_ns * 1.0 / lag(step_ns) OVER before - 1 AS step_change,
  lag(commit_id) OVER before AS previous_commit_id
FROM results
WINDOW before AS (PARTITION BY series, branch ORDER BY run);
)sql";

std::int64_t pragma(const Database& database, const char* name) {
  Statement statement(database, std::string("PRAGMA ") + name);
  return statement.next() ? statement.integer(0) : 0;
}

std::string moment_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

void bring_up(Database& database, std::int64_t version) {
  database.execute(kDropViews);
  for (auto from = pragma(database, "user_version"); from < version; ++from)
    database.execute(kMigrations.at(static_cast<std::size_t>(from)));
  if (version == kHistoryVersion) database.execute(kViews);
  database.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
  database.execute("PRAGMA user_version = " + std::to_string(version));
}

}  // namespace

std::int64_t version_of(const Database& database) { return pragma(database, "user_version"); }

std::int64_t application_of(const Database& database) { return pragma(database, "application_id"); }

const std::vector<std::string>& table_names() {
  static const std::vector<std::string> names{"runs",    "series", "cases",
                                              "records", "parts",  "seals"};
  return names;
}

void migrate(Database& database, std::int64_t version) {
  const auto before = version_of(database);
  bring_up(database, version);
  if (before < kWithAxes && version >= kWithAxes) fill_axes(database);
  if (before < kSealed && version >= kSealed) seal_all(database, moment_now());
}

void migrate_copy(Database& database) {
  const auto before = version_of(database);
  bring_up(database, kHistoryVersion);
  if (before < kWithAxes) fill_axes(database);
  if (before < kSealed) note_unsealed(database);
}

}  // namespace peakbench::history
