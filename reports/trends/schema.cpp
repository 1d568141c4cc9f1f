#include "reports/trends/schema.h"

#include <zlib.h>

#include <stdexcept>
#include <string>

#include "base/errors.h"
#include "base/json.h"
#include "records/axes.h"

namespace peakbench::trends {
namespace {

// zlib makes nothing longer than this out of a byte: a damaged length asks for no memory.
constexpr std::size_t kMostOfByte = 1032;

const Bytef* bytes_of(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

}  // namespace

std::string pack(std::string_view text) {
  uLongf size = compressBound(text.size());
  std::string packed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size, bytes_of(text), text.size(),
                Z_DEFAULT_COMPRESSION) != Z_OK)
    throw std::runtime_error("zlib: not enough memory to compress a run");
  packed.resize(size);
  return packed;
}

std::string unpack(const std::string& packed, std::int64_t bytes) {
  if (bytes < 0 || bytes > kMostBytes ||
      static_cast<std::size_t>(bytes) > packed.size() * kMostOfByte)
    throw ConfigError("its length is damaged");
  std::string text(static_cast<std::size_t>(bytes), '\0');
  auto size = static_cast<uLongf>(bytes);
  const int code =
      uncompress(reinterpret_cast<Bytef*>(text.data()), &size, bytes_of(packed), packed.size());
  if (code != Z_OK || size != text.size()) throw ConfigError("its compressed text is damaged");
  return text;
}

std::int64_t checksum(std::string_view text) {
  return static_cast<std::int64_t>(crc32_z(crc32(0, nullptr, 0), bytes_of(text), text.size()));
}

namespace {

using nlohmann::json;
using sqlite::Database;
using sqlite::Statement;

// What is asked often is a column; the whole record lies beside it, compressed (records). A series
// is what a trend joins: one case on one card with one set of device options. The primary key of
// `cases` keeps a series' points together in the order of adding, so that a trend reads one stretch
// of the file. Parts are the same night after night on an emulated card: equal ones are kept once.
// `seals` and `sum`: checksums of what a run consists of (seal.h). `figures`: how far those of an
// emulated card can be relied on, a word of run.json.
constexpr const char* kTables = R"sql(
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
  checksum INTEGER NOT NULL,
  verdict TEXT NOT NULL DEFAULT '',
  note TEXT NOT NULL DEFAULT ''
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
  axes TEXT NOT NULL,
  axes_sum INTEGER NOT NULL,
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
  sum INTEGER,
  figures TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (series, run)
) WITHOUT ROWID;
CREATE INDEX cases_by_run ON cases (run);
CREATE TABLE records (
  run INTEGER PRIMARY KEY,
  run_json BLOB NOT NULL,
  run_json_bytes INTEGER NOT NULL,
  parts_id INTEGER
);
CREATE INDEX records_by_parts ON records (parts_id);
CREATE TABLE parts (
  id INTEGER PRIMARY KEY,
  checksum INTEGER NOT NULL,
  packed BLOB NOT NULL,
  bytes INTEGER NOT NULL
);
CREATE INDEX parts_by_checksum ON parts (checksum);
CREATE TABLE seals (
  run INTEGER PRIMARY KEY,
  row INTEGER NOT NULL,
  record INTEGER NOT NULL
);
)sql";

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

}  // namespace

std::int64_t version_of(const Database& database) { return pragma(database, "user_version"); }

std::int64_t application_of(const Database& database) { return pragma(database, "application_id"); }

const std::vector<std::string>& table_names() {
  static const std::vector<std::string> names{"runs",    "series", "cases",
                                              "records", "parts",  "seals"};
  return names;
}

void make_tables(Database& database) {
  database.execute(kTables);
  database.execute(kViews);
  database.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
  database.execute("PRAGMA user_version = " + std::to_string(kHistoryVersion));
}

std::string axes_text(const records::Setting& setting) {
  return json_line(records::plain_values(setting));
}

std::int64_t axes_sum(const std::string& case_id, const std::string& text) {
  return checksum(case_id + "\n" + text);
}

json axes_from(const std::string& case_id, const std::string& text, std::int64_t sum) {
  if (axes_sum(case_id, text) != sum) return json::object();
  try {
    auto axes = parse_json(text);
    return axes.is_object() ? axes : json::object();
  } catch (const RunFileError&) {
    return json::object();
  }
}

}  // namespace peakbench::trends
