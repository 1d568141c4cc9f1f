// Filing a run: what is asked often as columns, the record beside it.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "base/nearest.h"
#include "records/device.h"
#include "reports/analysis/environment.h"
#include "reports/render/text.h"
#include "reports/trends/history.h"
#include "reports/trends/schema.h"
#include "reports/trends/seal.h"

namespace peakbench::trends {
namespace {

using records::CaseResult;
using records::is_emulated;
using records::Run;
using sqlite::Blob;
using sqlite::Database;
using sqlite::Statement;

// What the machine did to a case is no point of its trend, nor is what was interrupted: it was not
// measured.
bool is_point(const CaseResult& result) {
  return result.status != records::Status::kHostFailure &&
         result.status != records::Status::kInterrupted;
}

void check(const Run& run, const Labels& labels) {
  if (run.status == "running")
    throw ConfigError(
        "the run has not ended (its status is `running`); wait for it, or end it with `peakbench "
        "run ... --resume`, then add it");
  if (run.cases.empty())
    throw ConfigError("the run has no case that ended: there is nothing to add");
  if (std::ranges::none_of(run.cases, is_point))
    throw ConfigError(
        "the machine failed every case of the run, or it was interrupted: there is nothing to add. "
        "The same `peakbench run` with --resume runs them again; a traced program is traced "
        "again.");
  std::set<std::string> ids;
  for (const auto& result : run.cases)
    if (!ids.insert(result.spec.id).second)
      throw ConfigError(
          fmt::format("the run has the case {} twice; is run.json edited?", result.spec.id));
  const std::vector<std::string> verdicts{"passed", "regressed", "failed", "unknown", "accepted"};
  if (!labels.verdict.empty() && std::ranges::find(verdicts, labels.verdict) == verdicts.end())
    throw ConfigError(
        fmt::format("no verdict \"{}\"{}", labels.verdict, suggestion(labels.verdict, verdicts)));
}

// One that is damaged is not the same: then the run is filed anew.
bool holds(const Statement& candidate, const std::string& text) {
  try {
    return unpack(candidate.blob(1), candidate.integer(2)) == text;
  } catch (const ConfigError&) {
    return false;
  }
}

std::optional<std::int64_t> same_run(const Database& database, std::int64_t sum,
                                     const std::string& text) {
  Statement candidates(database,
                       "SELECT runs.id, run_json, run_json_bytes FROM runs "
                       "JOIN records ON records.run = runs.id WHERE checksum = ?");
  candidates.bind_all(sum);
  while (candidates.next())
    if (candidates.integer(2) == static_cast<std::int64_t>(text.size()) && holds(candidates, text))
      return candidates.integer(0);
  return std::nullopt;
}

std::int64_t insert_run(Database& database, const Run& run, const Labels& labels,
                        std::int64_t sum) {
  Statement insert(
      database,
      "INSERT INTO runs (added, created, title, suite, status, branch, commit_id, libtorch, "
      "libtorch_git_version, libtorch_cuda, driver, peakbench, schema_version, verdict, note, "
      "steps, cases, ok_cases, checksum) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  const auto added = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  const auto conditions = analysis::conditions_of(run);
  // Folders differ from machine to machine.
  const auto suite = std::filesystem::path(run.suite).filename().string();
  const auto ok = std::ranges::count(run.cases, records::Status::kOk, &CaseResult::status);
  insert.run(added, run.created, run.title, suite, run.status, labels.branch, labels.commit,
             conditions.libtorch, conditions.libtorch_git_version, conditions.libtorch_cuda,
             conditions.driver, reports::fact_text(run.environment, "peakbench"),
             run.schema_version, labels.verdict, labels.note, conditions.steps,
             std::ranges::count_if(run.cases, is_point), ok, sum);
  return database.last_row();
}

// Prepared once for all cases of a run.
class CaseRows {
 public:
  explicit CaseRows(Database& database)
      : database_(database),
        find_(database,
              "SELECT id FROM series WHERE case_id = ? AND card = ? AND "
              "device_options = ?"),
        insert_series_(database,
                       "INSERT INTO series (case_id, card, device_options, model, strategy, "
                       "device, dtype, batch_size, sequence_length, emulated, axes, axes_sum) "
                       "VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"),
        insert_case_(database, "INSERT INTO cases VALUES (?,?,?,?,?,?,?,?,?,?,NULL,?)") {}

  void add(std::int64_t run, const CaseResult& result, const std::string& card) {
    constexpr int kMemory = 3, kThroughput = 7, kFigures = 10;
    const std::string status = to_string(result.status);
    insert_case_.bind_all(series_of(result, card), run, status);
    for (int column = kMemory; column < kFigures; ++column) insert_case_.bind(column, std::nullopt);
    if (const auto& memory = result.memory) {
      insert_case_.bind(kMemory, memory->peak_allocated_bytes);
      insert_case_.bind(kMemory + 1, memory->peak_requested_bytes);
      insert_case_.bind(kMemory + 2, memory->peak_reserved_bytes);
      insert_case_.bind(kMemory + 3, memory->peak_phase);
    }
    if (const auto& throughput = result.throughput) {
      insert_case_.bind(kThroughput, throughput->step_ns.median);
      insert_case_.bind(kThroughput + 1, throughput->samples_per_second);
      insert_case_.bind(kThroughput + 2, throughput->tokens_per_second);
    }
    const auto* verdict = records::verdict_of(result);
    const std::string figures = verdict == nullptr ? "" : verdict_word(verdict->kind);
    insert_case_.bind(kFigures, figures);
    insert_case_.run();
  }

 private:
  std::int64_t series_of(const CaseResult& result, const std::string& card) {
    const auto& spec = result.spec;
    const auto options = spec.device_options.empty() ? "" : spec.device_options.dump();
    find_.bind_all(spec.id, card, options);
    const bool found = find_.next();
    const auto id = found ? find_.integer(0) : 0;
    find_.reset();
    if (found) return id;
    const auto axes = axes_text(spec);
    insert_series_.run(spec.id, card, options, reports::selection_text(spec.model),
                       reports::stack_text(spec), spec.device, spec.dtype, spec.batch_size,
                       spec.sequence_length, is_emulated(result), axes, axes_sum(spec.id, axes));
    return database_.last_row();
  }

  Database& database_;
  Statement find_, insert_series_, insert_case_;
};

// Where these parts are: equal ones are kept once. nullopt where there are none.
std::optional<std::int64_t> parts_row(Database& database,
                                      const std::vector<analysis::CaseParts>& parts) {
  if (parts.empty()) return std::nullopt;
  const auto text = analysis::to_json(parts).dump();
  const auto packed = pack(text);
  const auto sum = checksum(text);
  Statement candidates(database, "SELECT id, packed FROM parts WHERE checksum = ?");
  candidates.bind_all(sum);
  while (candidates.next())
    if (candidates.blob(1) == packed) return candidates.integer(0);
  Statement insert(database, "INSERT INTO parts (checksum, packed, bytes) VALUES (?, ?, ?)");
  insert.run(sum, Blob{packed}, text.size());
  return database.last_row();
}

void insert_record(Database& database, std::int64_t run, const std::string& text,
                   const std::vector<analysis::CaseParts>& parts) {
  const auto parts_id = parts_row(database, parts);
  Statement insert(database,
                   "INSERT INTO records (run, run_json, run_json_bytes, parts_id) "
                   "VALUES (?, ?, ?, ?)");
  insert.run(run, Blob{pack(text)}, text.size(), parts_id);
}

// RFC 3339 in UTC sorts as text.
std::string clock_note(const Database& database, const Run& run, const Labels& labels) {
  Statement last(database,
                 "SELECT id, created FROM runs WHERE branch = ? ORDER BY id DESC LIMIT 1");
  last.bind_all(labels.branch);
  if (!last.next() || last.text(1) <= run.created) return "";
  return fmt::format(
      "created {}, earlier than the previous run {} ({}): clock skew; the history keeps the order "
      "in which runs were added",
      run.created, last.integer(0), last.text(1));
}

std::string labels_note(const Database& database, std::int64_t number, const Labels& asked) {
  Statement row(database, "SELECT branch, commit_id, verdict FROM runs WHERE id = ?");
  row.bind_all(number);
  row.next();
  const auto differs = [](const std::string& now, const std::string& there) {
    return !now.empty() && now != there;
  };
  if (!differs(asked.branch, row.text(0)) && !differs(asked.commit, row.text(1)) &&
      !differs(asked.verdict, row.text(2)))
    return "";
  return fmt::format("it stays filed under branch \"{}\", commit \"{}\", verdict \"{}\"",
                     row.text(0), row.text(1), row.text(2));
}

}  // namespace

std::string card_of(const CaseResult& result, const Run& run) {
  const auto& device = result.spec.device;
  if (is_emulated(result)) return device;
  const auto named = reports::fact_of(result, run, records::recorded_device(device).model_fact);
  return named.empty() ? device : named;
}

Added History::add(const Run& run, const std::vector<analysis::CaseParts>& parts,
                   const Labels& labels) {
  check(run, labels);
  const auto text = json_line(to_json(run));
  if (static_cast<std::int64_t>(text.size()) > kMostBytes)
    throw ConfigError(fmt::format("its record has {} bytes; a history keeps runs of up to {}",
                                  text.size(), kMostBytes));
  const auto sum = checksum(text);
  return guarded([&] {
    Transaction transaction(database_);
    if (const auto there = same_run(database_, sum, text))
      return Added{*there, false, labels_note(database_, *there, labels)};
    Added added{0, true, clock_note(database_, run, labels)};
    added.number = insert_run(database_, run, labels, sum);
    CaseRows rows(database_);
    for (const auto& result : run.cases)
      if (is_point(result)) rows.add(added.number, result, card_of(result, run));
    insert_record(database_, added.number, text, parts);
    seal(database_, added.number);
    transaction.commit();
    return added;
  });
}

}  // namespace peakbench::trends
