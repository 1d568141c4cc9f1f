#include "reports/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/errors.h"
#include "records/device.h"
#include "reports/analysis/environment.h"
#include "reports/compare/changes.h"
#include "reports/render/words.h"

namespace peakbench::compare {
namespace {

namespace fs = std::filesystem;
using records::CaseResult;
using records::Status;
using Cases = std::map<std::string, const CaseResult*>;

// Cases that the plan added to tell a stack's parts apart are nobody's question.
bool is_asked_for(const CaseResult& result) { return result.added_for.empty(); }

Cases by_id(const records::Run& run) {
  Cases cases;
  for (const auto& result : run.cases)
    if (is_asked_for(result)) cases.emplace(result.spec.id, &result);
  return cases;
}

// nullptr: it has several cases, or one of a model.
const CaseResult* only_program(const records::Run& run) {
  const auto cases = by_id(run);
  if (cases.size() != 1) return nullptr;
  const auto& facts = records::facts_of(cases.begin()->second->spec.kind);
  return facts.has_lines && !facts.has_stack ? cases.begin()->second : nullptr;
}

// BASE's cases by the ids that NEW has for them.
Cases matched(const records::Run& base, const records::Run& now) {
  const auto *before = only_program(base), *after = only_program(now);
  return before && after ? Cases{{after->spec.id, before}} : by_id(base);
}

std::string first_ids(const records::Run& run) {
  if (run.cases.empty()) return "none";
  constexpr std::size_t kShown = 2;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, run.cases.size()); ++i)
    text += (i == 0 ? "" : ", ") + run.cases[i].spec.id;
  return text + (run.cases.size() > kShown ? ", ..." : "");
}

bool same_run(const Source& base, const Source& now) {
  if (base.folder.empty() != now.folder.empty()) return false;
  if (base.folder.empty()) return base.label == now.label;
  std::error_code error;
  return fs::equivalent(base.folder, now.folder, error);
}

void check(const Source& base, const Source& now, const Cases& before) {
  if (same_run(base, now))
    throw ConfigError(fmt::format(
        "BASE and NEW are the same run ({}): nothing could differ. Name the run to compare with "
        "first, the new one second.",
        now.label));
  const bool common = std::ranges::any_of(now.run.cases, [&](const CaseResult& after) {
    return is_asked_for(after) && before.count(after.spec.id) != 0;
  });
  if (!common)
    throw ConfigError(fmt::format(
        "{} and {} have no case in common. Cases are matched by id. BASE has: {}. NEW has: {}. "
        "Run both with the same suite.",
        base.label, now.label, first_ids(base.run), first_ids(now.run)));
}

void add_process(std::vector<std::int64_t> times, std::vector<double>& logs) {
  const auto median = statistics::median_of(std::move(times));
  if (median > 0) logs.push_back(std::log(static_cast<double>(median)));
}

// A process is a round. Files of schema 1.0 have no rounds: there a process is a repetition, whose
// steps stand together; where the counts do not say where one ends, all steps count as one process.
std::vector<double> logs_of_processes(const CaseResult& result, const records::Run& run) {
  std::vector<double> logs;
  for (const auto& round : result.throughput->rounds) add_process(round.step_times_ns, logs);
  if (!logs.empty()) return logs;
  const auto& times = result.throughput->step_times_ns;
  const auto setting = [&](const char* key) -> std::size_t {
    const auto found = run.settings.find(key);
    if (found == run.settings.end() || !found->is_number_integer()) return 0;
    return static_cast<std::size_t>(std::max<std::int64_t>(0, found->get<std::int64_t>()));
  };
  std::size_t steps = setting("steps");
  if (steps == 0 || steps * setting("repetitions") != times.size()) steps = times.size();
  for (std::size_t first = 0; steps > 0 && first < times.size(); first += steps) {
    const auto begin = times.begin() + static_cast<std::ptrdiff_t>(first);
    add_process({begin, begin + static_cast<std::ptrdiff_t>(steps)}, logs);
  }
  return logs;
}

std::optional<Speed> speed_of(const Source& base, const CaseResult& before, const Source& now,
                              const CaseResult& after, const Policy& policy) {
  if (!before.throughput || !after.throughput) return std::nullopt;
  constexpr double kMarginShown = 0.02;  // where speed stops no gate
  Speed speed{before.throughput->step_ns.median, after.throughput->step_ns.median, {}};
  const auto of_base = logs_of_processes(before, base.run),
             of_now = logs_of_processes(after, now.run);
  speed.difference = statistics::judge_groups(
      of_base, of_now, policy.throughput.value_or(kMarginShown), policy.false_alarms);
  if (const auto why = why_times_differ(base.run, before, now.run, after); !why.empty()) {
    speed.difference = {};
    speed.difference.reason = why;
  }
  return speed;
}

std::string in_words(records::VerdictKind kind) {
  if (kind == records::VerdictKind::unreliable) return verdict_word(kind);
  const bool begins_with_vowel =
      kind == records::VerdictKind::upper_bound || kind == records::VerdictKind::estimate;
  return fmt::format("{} {}", begins_with_vowel ? "an" : "a", verdict_word(kind));
}

std::optional<VerdictChange> verdict_change(const CaseResult& before, const CaseResult& after) {
  const auto *base = records::verdict_of(before), *now = records::verdict_of(after);
  if (base == nullptr || now == nullptr) return std::nullopt;
  const int more = records::doubt(now->kind) - records::doubt(base->kind);
  return VerdictChange{verdict_word(base->kind), verdict_word(now->kind),
                       more > 0   ? Direction::kWorse
                       : more < 0 ? Direction::kBetter
                                  : Direction::kSame,
                       analysis::main_reason(*now)};
}

std::string why_missing(const records::Run& now, const std::string& id) {
  if (std::ranges::find(now.pending, id) != now.pending.end())
    return fmt::format("NEW has not run it: the run is {}", now.status);
  return "NEW does not have it";
}

// What the machine did says nothing of the case: there it was not measured.
bool is_measured(const CaseResult& result) { return result.status != Status::kHostFailure; }

std::string why_not_measured(const char* side, const CaseResult& result) {
  return fmt::format(
      "the machine failed it in {} ({}); the same `peakbench run` with --resume runs it again",
      side, result.reason);
}

CaseComparison describe(const CaseResult& result) {
  CaseComparison found;
  found.id = result.spec.id;
  found.slug = result.spec.slug;
  found.emulated = records::is_emulated(result);
  return found;
}

CaseComparison compare_case(const Source& base, const CaseResult* before, const Source& now,
                            const CaseResult& after, const Policy& policy) {
  auto found = describe(after);
  found.now_status = to_string(after.status);
  constexpr double kSecond = 1e-9;
  found.now_seconds = static_cast<double>(after.wall_ns) * kSecond;
  if (before) found.base_status = to_string(before->status);
  if (!is_measured(after)) {
    found.state = CaseState::kMissing;
    found.reason = why_not_measured("NEW", after);
    return found;
  }
  const bool ok = after.status == Status::kOk;
  if (!ok) found.reason = after.reason;
  if (!before || !is_measured(*before)) {
    if (ok && before) found.reason = why_not_measured("BASE", *before);
    found.state = ok ? CaseState::kNew : CaseState::kFailed;
    return found;
  }
  const bool was_ok = before->status == Status::kOk;
  if (!ok || !was_ok) {
    found.state = ok       ? CaseState::kRecovered
                  : was_ok ? CaseState::kFailed
                           : CaseState::kStillFailed;
    return found;
  }
  found.reason = why_not_comparable(base.run, *before, now.run, after);
  if (!found.reason.empty()) {
    found.state = CaseState::kRefused;
    return found;
  }
  compare_memory(base, *before, now, after, policy, found);
  found.speed = speed_of(base, *before, now, after, policy);
  found.verdict = verdict_change(*before, after);
  return found;
}

Side side_of(const Source& source) {
  const auto& run = source.run;
  const auto commit = run.environment.find("commit");
  const bool is_known = commit != run.environment.end() && commit->is_string();
  return {source.label, run.title,         run.created, is_known ? commit->get<std::string>() : "",
          run.status,   run.schema_version};
}

// A gate that passes would seem to say that nothing grew. One note a kind, however many cases.
void add_doubts(const Source& now, const std::vector<CaseComparison>& cases,
                std::vector<std::string>& notes) {
  std::vector<const records::Verdict*> verdicts;
  for (const auto& one : cases) {
    const auto* result = records::find_case(now.run, one.id);
    const auto* verdict = result == nullptr ? nullptr : records::verdict_of(*result);
    const bool counts =
        one.state == CaseState::kCompared && verdict != nullptr &&
        (verdict->kind == records::VerdictKind::estimate ||
         records::doubt(verdict->kind) >= records::doubt(records::VerdictKind::lower_bound));
    verdicts.push_back(counts ? verdict : nullptr);
  }
  for (const auto& [kind, doubt] : analysis::doubts_of(verdicts)) {
    const auto why = analysis::main_reason(*verdicts[doubt.tightest]);
    const auto more = doubt.count == 1 ? "" : fmt::format(" and {} more", doubt.count - 1);
    notes.push_back(
        fmt::format("{}{}: NEW's figures are {}{}: what they do not show is not compared.",
                    cases[doubt.tightest].id, more, in_words(kind),
                    why.empty() ? "" : fmt::format(" ({})", why)));
  }
}

void add_peaks_only(const Source& base, const Source& now, std::vector<std::string>& notes) {
  if (!base.peaks_only && !now.peaks_only) return;
  notes.push_back(
      fmt::format("{} from `peakbench emulate --json`. Compared are allocated and reserved memory "
                  "at the peak, of the process with the most allocated memory, and what fills the "
                  "peak if both files have it. Requested bytes and phases are not in these files.",
                  base.peaks_only && now.peaks_only ? "Both are"
                  : base.peaks_only                 ? "BASE is"
                                                    : "NEW is"));
}

void add_notes(const Comparison& found, std::vector<std::string>& notes) {
  if (!found.incomparable.empty())
    notes.push_back(fmt::format(
        "The runs are not comparable ({}): what differs may come of that and not of the "
        "code. Measure BASE again as NEW was measured.",
        found.incomparable));
  for (const auto& [name, side] : {std::pair{"BASE", &found.base}, {"NEW", &found.now}})
    if (side->status != "complete")
      notes.push_back(fmt::format("{} did not end: it is {}.", name, side->status));
  if (!found.base.created.empty() && !found.now.created.empty() &&
      found.now.created < found.base.created)
    notes.push_back(
        fmt::format("NEW is older than BASE by its date: {} and {}. Are they the right way round?",
                    found.now.created, found.base.created));
  const bool judged = std::ranges::any_of(found.cases, [](const auto& one) {
    return one.speed && one.speed->difference.direction != Direction::kUnknown;
  });
  if (judged)
    notes.push_back(
        "The two runs were timed one after the other: what the machine did meanwhile looks like "
        "the code. `peakbench ab` runs two builds in turn.");
}

template <class Is>
std::size_t count_if(const Comparison& comparison, Is is) {
  return static_cast<std::size_t>(std::ranges::count_if(comparison.cases, is));
}

}  // namespace

const char* to_string(CaseState state) {
  static constexpr std::array kNames{"compared",     "new",       "missing", "failed",
                                     "still_failed", "recovered", "refused"};
  return kNames.at(static_cast<std::size_t>(state));
}

Policy policy_of(const Source& base, const Source& now) {
  Policy policy;
  for (const auto* source : {&now, &base}) {
    const auto& settings = source->run.settings;
    const auto gate = settings.is_object() ? settings.find("gate") : settings.end();
    if (!settings.is_object() || gate == settings.end() || !gate->is_object()) continue;
    for (const auto& [key, value] : gate->items())
      records::set_gate(policy, key, value.is_string() ? value.get<std::string>() : value.dump(),
                        source->label + ": settings.gate." + key);
    break;
  }
  return policy;
}

Comparison compare(const Source& base, const Source& now, const Policy& policy, Pairing pairing) {
  const auto before =
      pairing == Pairing::of_programs ? matched(base.run, now.run) : by_id(base.run);
  const auto after = by_id(now.run);
  check(base, now, before);
  Comparison found;
  found.base = side_of(base);
  found.now = side_of(now);
  found.policy = policy;
  found.changes = changes_between(base.run, now.run);
  found.incomparable = analysis::known_difference(analysis::conditions_of(base.run),
                                                  analysis::conditions_of(now.run));
  for (const auto& result : now.run.cases) {
    if (!is_asked_for(result)) continue;
    const auto at = before.find(result.spec.id);
    found.cases.push_back(
        compare_case(base, at == before.end() ? nullptr : at->second, now, result, policy));
  }
  const bool is_renamed =
      !before.empty() && before.begin()->first != before.begin()->second->spec.id;
  for (const auto& result : base.run.cases) {
    if (!is_asked_for(result) || is_renamed || after.count(result.spec.id) != 0) continue;
    auto missing = describe(result);
    missing.state = CaseState::kMissing;
    missing.base_status = to_string(result.status);
    missing.reason = why_missing(now.run, result.spec.id);
    found.cases.push_back(std::move(missing));
  }
  if (is_renamed)
    found.notes.push_back(fmt::format("BASE ran {}, NEW ran {}: they are compared as one program.",
                                      before.begin()->second->spec.id, before.begin()->first));
  add_notes(found, found.notes);
  add_peaks_only(base, now, found.notes);
  add_doubts(now, found.cases, found.notes);
  return found;
}

const Measure* peak_allocated(const CaseComparison& one) {
  const auto found = std::ranges::find_if(one.measures, [](const Measure& measure) {
    return measure.where == "peak" && measure.space.empty() && measure.figure == "allocated";
  });
  return found == one.measures.end() ? nullptr : &*found;
}

const Measure* telling_figure(const CaseComparison& one) {
  if (one.state != CaseState::kCompared || one.memory == Direction::kSame) return nullptr;
  const auto rank = [](const Measure& measure) {
    const bool own = measure.space.empty(), peak = measure.where == "peak";
    if (own && peak)
      return measure.figure == "allocated" ? 0 : measure.figure == "requested" ? 1 : 2;
    if (peak) return 3;
    return measure.figure == "allocated" ? 4 : 5;
  };
  const Measure* telling = nullptr;
  for (const auto& measure : one.measures) {
    if (!measure.is_held || measure.direction != one.memory) continue;
    const auto precedes = [&](const Measure& other) {
      if (rank(measure) != rank(other)) return rank(measure) < rank(other);
      return std::abs(measure.now - measure.base) > std::abs(other.now - other.base);
    };
    if (telling == nullptr || precedes(*telling)) telling = &measure;
  }
  return telling;
}

const PhaseGrowth* explanation_of(const CaseComparison& one, const Measure& measure) {
  if (!measure.space.empty()) return nullptr;
  if (measure.where == "peak") return one.at_peak ? &*one.at_peak : nullptr;
  const auto found = std::ranges::find(one.growth, measure.where, &PhaseGrowth::phase);
  return found == one.growth.end() ? nullptr : &*found;
}

bool is_told_at_peak(const CaseComparison& one, const PhaseGrowth& growth) {
  return one.at_peak && one.at_peak->phase == growth.phase &&
         one.at_peak->base_phase == growth.phase;
}

std::size_t count(const Comparison& comparison, CaseState state) {
  return count_if(comparison, [&](const CaseComparison& one) { return one.state == state; });
}

std::size_t count_memory(const Comparison& comparison, Direction direction) {
  return count_if(comparison, [&](const CaseComparison& one) {
    return one.state == CaseState::kCompared && one.memory == direction;
  });
}

std::size_t count_speed(const Comparison& comparison, Direction direction) {
  return count_if(comparison, [&](const CaseComparison& one) {
    return one.speed && one.speed->difference.direction == direction;
  });
}

}  // namespace peakbench::compare
