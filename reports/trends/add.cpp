// Filing a run: what is asked often as columns, the record beside it.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <set>

#include "base/errors.h"
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
using sqlite::Database;
using sqlite::Statement;

// Its file's name: folders differ from machine to machine.
std::string suite_of(const Run& run) {
  return std::filesystem::path(run.suite).filename().string();
}

// What the machine did to a case is no point of its trend, nor is what was interrupted: it was not
// measured.
std::string figures_word(const CaseResult& result) {
  const auto* verdict = records::verdict_of(result);
  return verdict == nullptr ? "" : verdict_word(verdict->kind);
}

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
  const auto& verdicts = known_verdicts();
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
  candidates.bind(0, sum);
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
  const std::vector<std::string> texts{added,
                                       run.created,
                                       run.title,
                                       suite_of(run),
                                       run.status,
                                       labels.branch,
                                       labels.commit,
                                       conditions.libtorch,
                                       conditions.libtorch_git_version,
                                       conditions.libtorch_cuda,
                                       conditions.driver,
                                       reports::fact_text(run.environment, "peakbench"),
                                       run.schema_version,
                                       labels.verdict,
                                       labels.note};
  int place = 0;
  for (const auto& text : texts) insert.bind(place++, text);
  const auto ok = std::ranges::count_if(
      run.cases, [](const CaseResult& result) { return result.status == records::Status::kOk; });
  insert.bind(place++, conditions.steps);
  insert.bind(place++, static_cast<std::int64_t>(std::ranges::count_if(run.cases, is_point)));
  insert.bind(place++, static_cast<std::int64_t>(ok));
  insert.bind(place, sum);
  insert.run();
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
    const auto id = series_of(result, card);
    const auto status = to_string(result.status);
    insert_case_.bind(0, id);
    insert_case_.bind(1, run);
    insert_case_.bind(2, status);
    const auto& memory = result.memory;
    const auto phase = memory ? memory->peak_phase : "";
    if (memory) {
      insert_case_.bind(3, memory->peak_allocated_bytes);
      insert_case_.bind(4, memory->peak_requested_bytes);
      insert_case_.bind_or_null(5, memory->peak_reserved_bytes);
      insert_case_.bind(6, phase);
    } else {
      for (int column = 3; column <= 6; ++column) insert_case_.bind_null(column);
    }
    const auto& throughput = result.throughput;
    if (throughput) {
      insert_case_.bind(7, throughput->step_ns.median);
      insert_case_.bind_number(8, throughput->samples_per_second);
      insert_case_.bind_number_or_null(9, throughput->tokens_per_second);
    } else {
      for (int column = 7; column <= 9; ++column) insert_case_.bind_null(column);
    }
    const auto figures = figures_word(result);
    insert_case_.bind(10, figures);
    insert_case_.run();
  }

 private:
  std::int64_t series_of(const CaseResult& result, const std::string& card) {
    const auto& spec = result.spec;
    const auto options = spec.device_options.empty() ? "" : spec.device_options.dump();
    find_.bind(0, spec.id);
    find_.bind(1, card);
    find_.bind(2, options);
    const bool found = find_.next();
    const auto id = found ? find_.integer(0) : 0;
    find_.reset();
    if (found) return id;
    const auto model = reports::selection_text(spec.model), stack = reports::stack_text(spec);
    int place = 0;
    for (const auto* text : {&spec.id, &card, &options, &model, &stack, &spec.device, &spec.dtype})
      insert_series_.bind(place++, *text);
    insert_series_.bind(place++, spec.batch_size);
    insert_series_.bind_or_null(place++, spec.sequence_length);
    insert_series_.bind(place++, static_cast<std::int64_t>(is_emulated(result)));
    const auto axes = axes_text(spec);
    insert_series_.bind(place++, axes);
    insert_series_.bind(place, axes_sum(spec.id, axes));
    insert_series_.run();
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
  candidates.bind(0, sum);
  while (candidates.next())
    if (candidates.blob(1) == packed) return candidates.integer(0);
  Statement insert(database, "INSERT INTO parts (checksum, packed, bytes) VALUES (?, ?, ?)");
  insert.bind(0, sum);
  insert.bind_blob(1, packed);
  insert.bind(2, static_cast<std::int64_t>(text.size()));
  insert.run();
  return database.last_row();
}

void insert_record(Database& database, std::int64_t run, const std::string& text,
                   const std::vector<analysis::CaseParts>& parts) {
  const auto record = pack(text);
  Statement insert(database,
                   "INSERT INTO records (run, run_json, run_json_bytes, parts_id) "
                   "VALUES (?, ?, ?, ?)");
  insert.bind(0, run);
  insert.bind_blob(1, record);
  insert.bind(2, static_cast<std::int64_t>(text.size()));
  insert.bind_or_null(3, parts_row(database, parts));
  insert.run();
}

// RFC 3339 in UTC sorts as text.
std::string clock_note(const Database& database, const Run& run, const Labels& labels) {
  Statement last(database,
                 "SELECT id, created FROM runs WHERE branch = ? ORDER BY id DESC LIMIT 1");
  last.bind(0, labels.branch);
  if (!last.next() || last.text(1) <= run.created) return "";
  return fmt::format(
      "created {}, earlier than the previous run {} ({}): clock skew; the history keeps the order "
      "in which runs were added",
      run.created, last.integer(0), last.text(1));
}

std::string labels_note(const Database& database, std::int64_t number, const Labels& asked) {
  Statement row(database, "SELECT branch, commit_id, verdict FROM runs WHERE id = ?");
  row.bind(0, number);
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
  const auto text =
      to_json(run).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
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
