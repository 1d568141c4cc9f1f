#include "reports/trends/keep.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <map>
#include <regex>

#include "base/errors.h"
#include "base/fields.h"
#include "base/json.h"
#include "reports/trends/history.h"
#include "reports/trends/seal.h"

namespace peakbench::trends {
namespace {

using nlohmann::ordered_json;

using sqlite::Statement;

constexpr int kLineVersion = 1;

// What one branch and suite have kept so far.
struct Kept {
  std::int64_t seen = 0;
  bool good = false;
};

// The runs are gone already: that the file stays as large is no failure of it.
void give_back_room(sqlite::Database& database) {
  try {
    database.execute("PRAGMA incremental_vacuum");
  } catch (const sqlite::DatabaseError&) {  // a full disk: the next prune does it
  }
}

}  // namespace

ordered_json to_json(const RunRow& run) {
  return {{"number", run.number},
          {"added", run.added},
          {"created", run.created},
          {"title", run.title},
          {"suite", run.suite},
          {"status", run.status},
          {"branch", run.labels.branch},
          {"commit", run.labels.commit},
          {"verdict", run.labels.verdict},
          {"note", run.labels.note},
          {"cases", run.cases},
          {"ok_cases", run.ok_cases},
          {"libtorch", run.conditions.libtorch},
          {"libtorch_cuda", run.conditions.libtorch_cuda},
          {"driver", run.conditions.driver},
          {"steps", run.conditions.steps},
          {"peakbench", run.peakbench},
          {"stored_bytes", run.stored_bytes}};
}

std::string line_of(const History& history, const RunRow& run) {
  ordered_json line{{"history_line", kLineVersion}, {"number", run.number},
                    {"added", run.added},           {"branch", run.labels.branch},
                    {"commit", run.labels.commit},  {"verdict", run.labels.verdict},
                    {"note", run.labels.note}};
  line["run"] = to_json(history.record(run.number));
  line["parts"] = analysis::to_json(history.parts(run.number));
  return json_line(line);
}

Line read_line(const std::string& text) {
  const auto json = parse_json(text);
  const Fields fields(json);
  if (!fields.find("history_line"))
    throw ConfigError("no line of a history; expected what `peakbench history export` writes");
  if (fields.get<std::int64_t>("history_line") > kLineVersion)
    throw ConfigError("written by a newer Peakbench; use that one");
  Line line;
  line.labels = {fields.get_or<std::string>("branch", ""), fields.get_or<std::string>("commit", ""),
                 fields.get_or<std::string>("verdict", ""), fields.get_or<std::string>("note", "")};
  line.run = records::run_from_json(fields.require("run"));
  if (const auto* parts = fields.find("parts")) line.parts = analysis::parts_from_json(*parts);
  return line;
}

std::vector<RunRow> to_prune(const std::vector<RunRow>& runs, const PruneRules& rules) {
  std::map<std::pair<std::string, std::string>, Kept> kept;
  std::vector<RunRow> going;
  for (const auto& run : runs) {
    auto& group = kept[{run.labels.branch, run.suite}];
    const bool last_good = run.is_good() && !group.good;
    group.good = group.good || run.is_good();
    const bool newest = group.seen++ == 0;
    if (newest || last_good) continue;
    if (!rules.branch.empty() && run.labels.branch != rules.branch) continue;
    if (rules.keep && group.seen <= *rules.keep) continue;
    if (rules.older_than && run.created >= *rules.older_than) continue;
    going.push_back(run);
  }
  return going;
}

std::string moment_before(const std::string& text, std::int64_t now) {
  if (std::regex_match(text, std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}"))) return text + "T00:00:00Z";
  std::int64_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string unit(rest, text.data() + text.size());
  static const std::map<std::string, std::int64_t> days{{"d", 1}, {"w", 7}, {"y", 365}};
  const auto found = days.find(unit);
  if (error != std::errc() || count < 0 || count > 100'000 || found == days.end())
    throw ConfigError(fmt::format(
        "--older-than: expected a number of days, weeks or years like 90d, 12w or 2y, or a date "
        "like 2026-01-31; got \"{}\"",
        text));
  const auto moment = static_cast<std::time_t>(now - count * found->second * 86'400);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(moment));
}

std::size_t History::remove(const std::vector<std::int64_t>& numbers) {
  return guarded([&] {
    std::size_t removed = 0;
    {
      Transaction transaction(database_);
      for (const auto number : numbers) {
        for (const char* statement :
             {"DELETE FROM cases WHERE run = ?", "DELETE FROM records WHERE run = ?",
              "DELETE FROM seals WHERE run = ?", "DELETE FROM runs WHERE id = ?"})
          Statement(database_, statement).run(number);
        removed += static_cast<std::size_t>(database_.changes());
      }
      database_.execute(
          "DELETE FROM series WHERE NOT EXISTS "
          "(SELECT 1 FROM cases WHERE cases.series = series.id)");
      database_.execute(
          "DELETE FROM parts WHERE NOT EXISTS "
          "(SELECT 1 FROM records WHERE records.parts_id = parts.id)");
      transaction.commit();
    }
    give_back_room(database_);
    return removed;
  });
}

void History::set_verdict(std::int64_t number, const std::string& verdict,
                          const std::string& note) {
  run(number);
  guarded([&] {
    Transaction transaction(database_);
    expect_sound(number, Sealed::kRow);
    Statement row(database_, "UPDATE runs SET verdict = ?, note = ? WHERE id = ?");
    row.run(verdict, note, number);
    seal_row(database_, number);
    transaction.commit();
  });
}

}  // namespace peakbench::trends
