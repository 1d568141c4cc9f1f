#include "reports/compare/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "records/device.h"
#include "records/run_facts.h"
#include "records/run_files.h"
#include "reports/analysis/environment.h"
#include "reports/analysis/line_names.h"
#include "reports/analysis/why.h"
#include "trace/maxima.h"
#include "trace/trace_file.h"

namespace peakbench::compare {
namespace {

using nlohmann::json;
using records::is_emulated;
using reports::fact_of;
using reports::fact_text;
using Keys = std::set<std::string>;

Keys incidental(records::FactOf of) {
  const auto names = names_where(of, &records::RunFact::is_incidental);
  return {names.begin(), names.end()};
}

void add_keys(const json& object, Keys& keys) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) keys.insert(key);
}

// Which PyTorch and which driver decide as much as a setting does.
bool is_setting_of_environment(const std::string& key) {
  return key.starts_with("libtorch") || key.starts_with("driver");
}

void compare_objects(const json& base, const json& now, std::vector<Change>& changes,
                     const Keys& left_out, bool are_settings) {
  Keys keys;
  add_keys(base, keys);
  add_keys(now, keys);
  for (const auto& key : keys) {
    const auto before = fact_text(base, key), after = fact_text(now, key);
    if (left_out.count(key) != 0 || before == after) continue;
    changes.push_back({key, before, after, 0, are_settings || is_setting_of_environment(key)});
  }
}

// What cases of either run say of their devices, and runs of schema 1.0 said for all of them.
Keys keys_of_devices(const records::Run& base, const records::Run& now) {
  Keys keys;
  for (const auto* run : {&base, &now})
    for (const auto& result : run->cases) add_keys(reports::device_facts(result), keys);
  return keys;
}

// As the worker names it where it said something of the card, else as the case does.
std::string emulated_card_of(const records::CaseResult& result) {
  return result.emulation ? result.emulation->card : result.spec.device;
}

// Files of a schema before 1.4 say nothing of builds.
void compare_plugins(const records::CaseResult& before, const records::CaseResult& after,
                     std::vector<Change>& changes) {
  if (before.plugins.empty() || after.plugins.empty()) return;
  for (const auto& change : changed_plugins(before.plugins, after.plugins))
    changes.push_back({(change.kind == records::kScript ? "script " : "plugin ") + change.file,
                       "sha256 " + records::short_hash(change.before),
                       "sha256 " + records::short_hash(change.now), 0, false});
}

}  // namespace

std::vector<Change> changes_between(const records::Run& base, const records::Run& now) {
  std::vector<Change> changes;
  if (base.schema_version != now.schema_version)
    changes.push_back({"schema_version", base.schema_version, now.schema_version, 0, false});
  auto left_out = keys_of_devices(base, now);
  left_out.merge(incidental(records::FactOf::kEnvironment));
  compare_objects(base.environment, now.environment, changes, left_out, false);
  const auto of_settings = incidental(records::FactOf::kSettings);
  compare_objects(base.settings, now.settings, changes, of_settings, true);
  std::map<std::tuple<std::string, std::string, std::string, bool>, std::size_t> of_cases;
  for (const auto& after : now.cases) {
    const auto* before = records::find_case(base, after.spec.id);
    if (!before) continue;
    std::vector<Change> own;
    compare_objects(before->settings, after.settings, own, of_settings, true);
    Keys said;
    for (const auto* result : {before, &after}) add_keys(reports::device_facts(*result), said);
    for (const auto& key : said)
      if (const auto was = fact_of(*before, base, key), is = fact_of(after, now, key); was != is)
        own.push_back({key, was, is, 0, is_setting_of_environment(key)});
    if (before->spec.seed != after.spec.seed)
      own.push_back(
          {"seed", std::to_string(before->spec.seed), std::to_string(after.spec.seed), 0, true});
    compare_plugins(*before, after, own);
    for (const auto& change : own)
      ++of_cases[{change.name, change.base, change.now, change.is_setting}];
  }
  for (const auto& [key, count] : of_cases)
    changes.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), count, std::get<3>(key)});
  std::stable_partition(changes.begin(), changes.end(),
                        [](const Change& change) { return change.is_setting; });
  return changes;
}

std::string why_not_comparable(const records::Run& base, const records::CaseResult& before,
                               const records::Run& now, const records::CaseResult& after) {
  for (const auto& [side, result] : {std::pair{"BASE", &before}, {"NEW", &after}})
    if (!result->memory) return fmt::format("{} has no memory figures of it", side);
  if (is_emulated(before) != is_emulated(after))
    return fmt::format("{} has it from an emulated card, {} from a real one",
                       is_emulated(before) ? "BASE" : "NEW", is_emulated(before) ? "NEW" : "BASE");
  if (is_emulated(before)) {
    const auto was = emulated_card_of(before), is = emulated_card_of(after);
    if (was == is) return "";
    return fmt::format("another emulated card: {} in BASE, {} in NEW", was, is);
  }
  if (!records::recorded_device(after.spec.device).is_card) return "";
  const auto was = reports::real_card_of(before, base), is = reports::real_card_of(after, now);
  if (was == is) return "";
  const auto said = [](const std::string& card) { return card.empty() ? "one not named" : card; };
  return fmt::format("another card: {} in BASE, {} in NEW", said(was), said(is));
}

std::string why_times_differ(const records::Run& base, const records::CaseResult& before,
                             const records::Run& now, const records::CaseResult& after) {
  for (const auto& key :
       names_where(records::FactOf::kEnvironment, &records::RunFact::makes_times)) {
    const auto was = fact_of(before, base, key), is = fact_of(after, now, key);
    if (was != is) return fmt::format("another machine: {} is {} in BASE, {} in NEW", key, was, is);
  }
  const auto &was = *before.throughput, &is = *after.throughput;
  if (was.threads != is.threads)
    return fmt::format("{} threads in BASE, {} in NEW", was.threads, is.threads);
  if (was.clock != is.clock)
    return fmt::format("another clock: {} in BASE, {} in NEW", was.clock, is.clock);
  return "";
}

namespace {

using analysis::LineNames;

struct LinesOfPeak {
  std::vector<std::string> files;
  std::vector<trace::LineShare> lines;
  std::vector<analysis::Finding> findings = {};
};

// A trace that was left from another run must explain nothing; growth_note says why.
std::optional<LinesOfPeak> lines_of_peak(const Source& source, const records::CaseResult& result) {
  if (!source.lines.empty()) {
    LinesOfPeak found{{}, source.lines};
    for (const auto& share : found.lines)
      if (!share.line.file.empty()) found.files.push_back(share.line.file);
    return found;
  }
  if (source.folder.empty()) return std::nullopt;
  try {
    const auto path = records::trace_file(result, source.folder);
    if (!files::is_there(path)) return std::nullopt;
    const auto trace = trace::read_trace(path);
    if (trace.frames.empty() || trace.events.empty()) return std::nullopt;
    const auto lifetimes = trace::lifetimes(trace);
    const auto peak = trace::find_peak(trace, lifetimes);
    if (peak.allocated_bytes != result.memory->peak_allocated_bytes) return std::nullopt;
    return LinesOfPeak{trace.files, trace::lines_at(trace, lifetimes, peak.event),
                       analysis::why(trace, lifetimes).findings};
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

// The program's own.
std::set<std::string> own_files(const LinesOfPeak& side) {
  std::set<std::string> own;
  for (const auto& file : side.files)
    if (!trace::is_library_file(file)) own.insert(file);
  return own;
}

bool share_a_file(const LinesOfPeak& base, const LinesOfPeak& now) {
  return std::ranges::any_of(base.files, [&](const std::string& file) {
    return !trace::is_library_file(file) && std::ranges::find(now.files, file) != now.files.end();
  });
}

// A line of one side, by the name that it has there.
struct NamedLine {
  std::string name;
  std::int32_t number = 0;
  std::int64_t bytes = 0;
};
// The lines of each function, from the top of its file on.
using Functions = std::map<std::pair<std::string, std::string>, std::vector<NamedLine>>;

// `script`: the file that is the same in both, whatever it is called; empty: none is.
Functions functions_of(const LinesOfPeak& side, const LineNames& names, const std::string& script) {
  Functions functions;
  for (const auto& share : side.lines)
    functions[{share.line.file == script ? "" : names.file(share.line.file), share.line.function}]
        .push_back({names.line(share.line), share.line.line, share.bytes});
  for (auto& [where, lines] : functions) std::ranges::stable_sort(lines, {}, &NamedLine::number);
  return functions;
}

// Which lines of a function are the same in both: in their order, so that the bytes that differ are
// fewest, and of such pairings the one that moves fewest lines. -1: none.
std::vector<int> pairs_of(const std::vector<NamedLine>& base, const std::vector<NamedLine>& now) {
  constexpr std::size_t kMostPairs = 1 << 22;  // a function of so many lines is nobody's
  if (base.size() * now.size() > kMostPairs) return std::vector<int>(now.size(), -1);
  using Cost = std::pair<std::int64_t, std::int64_t>;  // bytes that differ, lines that moved
  const auto rows = base.size() + 1, columns = now.size() + 1;
  std::vector<Cost> least(rows * columns);
  const auto at = [&](std::size_t i, std::size_t k) -> Cost& { return least[i * columns + k]; };
  const auto alone = [](const Cost& before, const NamedLine& line) {
    return Cost{before.first + line.bytes, before.second};
  };
  const auto paired = [&](std::size_t i, std::size_t k) {
    const auto &one = base[i - 1], &other = now[k - 1];
    const auto& before = at(i - 1, k - 1);
    // Moved and of other bytes may be another line: dearer than one that is gone and one that is
    // new.
    if (one.bytes != other.bytes && one.number != other.number)
      return Cost{before.first + one.bytes + other.bytes + 1, before.second};
    return Cost{before.first + std::llabs(one.bytes - other.bytes),
                before.second + (one.number != other.number ? 1 : 0)};
  };
  for (std::size_t i = 1; i < rows; ++i) at(i, 0) = alone(at(i - 1, 0), base[i - 1]);
  for (std::size_t k = 1; k < columns; ++k) at(0, k) = alone(at(0, k - 1), now[k - 1]);
  for (std::size_t i = 1; i < rows; ++i)
    for (std::size_t k = 1; k < columns; ++k)
      at(i, k) = std::min(
          {paired(i, k), alone(at(i - 1, k), base[i - 1]), alone(at(i, k - 1), now[k - 1])});
  std::vector<int> pairs(now.size(), -1);
  for (std::size_t i = base.size(), k = now.size(); i > 0 && k > 0;) {
    if (at(i, k) == paired(i, k))
      pairs[--k] = static_cast<int>(--i);
    else if (at(i, k) == alone(at(i - 1, k), base[i - 1]))
      --i;
    else
      --k;
  }
  return pairs;
}

void add_changes(const std::string& function, const std::vector<NamedLine>& base,
                 const std::vector<NamedLine>& now, std::vector<LineChange>& found) {
  const auto pairs = pairs_of(base, now);
  for (std::size_t k = 0; k < now.size(); ++k) {
    const auto before = pairs[k] < 0 ? 0 : base[static_cast<std::size_t>(pairs[k])].bytes;
    if (before != now[k].bytes) found.push_back({now[k].name, function, before, now[k].bytes});
  }
  for (std::size_t i = 0; i < base.size(); ++i)
    if (std::ranges::count(pairs, static_cast<int>(i)) == 0)
      found.push_back({base[i].name, function, base[i].bytes, 0});
}

}  // namespace

namespace {

void add_findings(const LinesOfPeak& side, const LinesOfPeak& other, bool is_new,
                  std::vector<FindingChange>& found) {
  for (const auto& finding : side.findings)
    if (std::ranges::find(other.findings, finding.kind, &analysis::Finding::kind) ==
        other.findings.end())
      found.push_back({is_new, to_string(finding.kind), finding.sentence});
}

std::vector<LineChange> line_changes(const LinesOfPeak& base, const LinesOfPeak& now) {
  auto of_both = base.files;
  of_both.insert(of_both.end(), now.files.begin(), now.files.end());
  const bool together = share_a_file(base, now);
  const auto own_before = own_files(base), own_after = own_files(now);
  const bool are_scripts = !together && own_before.size() == 1 && own_after.size() == 1;
  auto before_edit = functions_of(base, LineNames(together ? of_both : base.files),
                                  are_scripts ? *own_before.begin() : "");
  const auto after_edit = functions_of(now, LineNames(together ? of_both : now.files),
                                       are_scripts ? *own_after.begin() : "");
  std::vector<LineChange> found;
  for (const auto& [where, lines] : after_edit) {
    add_changes(where.second, before_edit[where], lines, found);
    before_edit.erase(where);
  }
  for (const auto& [where, lines] : before_edit) add_changes(where.second, lines, {}, found);
  std::ranges::stable_sort(found, [](const LineChange& a, const LineChange& b) {
    return std::llabs(a.now - a.base) > std::llabs(b.now - b.base);
  });
  return found;
}

}  // namespace

void compare_programs(const Source& base, const records::CaseResult& before, const Source& now,
                      const records::CaseResult& after, CaseComparison& found) {
  const auto of_base = lines_of_peak(base, before);
  const auto of_now = of_base ? lines_of_peak(now, after) : std::nullopt;
  if (!of_now) return;
  found.lines = line_changes(*of_base, *of_now);
  add_findings(*of_now, *of_base, true, found.findings);
  add_findings(*of_base, *of_now, false, found.findings);
}

}  // namespace peakbench::compare
