// The memory of one case in two runs.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/file.h"
#include "records/run_files.h"
#include "reports/analysis/environment.h"
#include "reports/compare/changes.h"
#include "reports/render/words.h"
#include "trace/trace_file.h"

namespace peakbench::compare {
namespace {

using analysis::alive_at_maxima;
using analysis::CaseParts;
using analysis::causes_of;
using analysis::differences_of;
using analysis::Part;
using analysis::parts_of;

using records::Memory;

struct Measures {
  const Policy& policy;
  bool peaks_only;  // one side knows nothing else
  std::vector<Measure> found = {};

  // What both sides know of Memory, PhaseMemory or SpaceMemory.
  template <class Figures>
  void add(const std::string& where, const std::string& space, const Figures& base,
           const Figures& now) {
    const auto figure = [&](const char* name, const records::Tolerance& tolerance,
                            std::int64_t before, std::int64_t after) {
      const auto allowed = tolerance.allowed(before);
      const auto direction = after > before + allowed   ? Direction::kWorse
                             : after < before - allowed ? Direction::kBetter
                                                        : Direction::kSame;
      const bool is_held = where == "peak" || policy.phases_fail;
      found.push_back({where, space, name, before, after, allowed, direction, is_held});
    };
    if (!peaks_only)
      figure("requested", policy.requested, base.peak_requested_bytes, now.peak_requested_bytes);
    figure("allocated", policy.allocated, base.peak_allocated_bytes, now.peak_allocated_bytes);
    if constexpr (requires { base.peak_reserved_bytes; })
      if (base.peak_reserved_bytes && now.peak_reserved_bytes)
        figure("reserved", policy.reserved, *base.peak_reserved_bytes, *now.peak_reserved_bytes);
  }
};

template <typename Value>
std::vector<std::string> keys_of_both(const std::map<std::string, Value>& base,
                                      const std::map<std::string, Value>& now) {
  std::set<std::string> keys;
  for (const auto& [key, value] : base) keys.insert(key);
  for (const auto& [key, value] : now) keys.insert(key);
  return {keys.begin(), keys.end()};
}

template <typename Value>
const Value& value_or_none(const std::map<std::string, Value>& values, const std::string& key) {
  static const Value none{};
  const auto found = values.find(key);
  return found == values.end() ? none : found->second;
}

const Memory& memory_of(const records::CaseResult& result, std::int64_t number) {
  static const Memory none;
  const auto found = std::ranges::find(result.ranks, number, &records::Rank::rank);
  return found != result.ranks.end() && found->memory ? *found->memory : none;
}

// The case's own figures are those of its largest rank, and say nothing of the others.
void add_ranks(const records::CaseResult& before, const records::CaseResult& after,
               Measures& measures) {
  std::set<std::int64_t> numbers;
  for (const auto* result : {&before, &after})
    for (const auto& rank : result->ranks) numbers.insert(rank.rank);
  if (numbers.size() < 2) return;
  for (const auto number : numbers) {
    measures.add("peak", "rank " + std::to_string(number), memory_of(before, number),
                 memory_of(after, number));
  }
}

std::vector<Measure> measures_of(const records::CaseResult& before,
                                 const records::CaseResult& after, const Policy& policy,
                                 bool peaks_only) {
  const Memory &base = *before.memory, &now = *after.memory;
  Measures measures{policy, peaks_only};
  measures.add("peak", "", base, now);
  if (peaks_only) return measures.found;
  for (const auto& phase : reports::in_phase_order(keys_of_both(base.phases, now.phases)))
    measures.add(phase, "", value_or_none(base.phases, phase), value_or_none(now.phases, phase));
  for (const auto& space : keys_of_both(base.spaces, now.spaces))
    if (space != reports::own_space(before) && space != reports::own_space(after))
      measures.add("peak", space, value_or_none(base.spaces, space),
                   value_or_none(now.spaces, space));
  add_ranks(before, after, measures);
  return measures.found;
}

// Of one place; without it of all that the policy holds.
Direction worst(const std::vector<Measure>& measures, const std::string& where = "") {
  bool better = false;
  for (const auto& measure : measures) {
    if (where.empty() ? !measure.is_held : measure.where != where || !measure.space.empty())
      continue;
    if (measure.direction == Direction::kWorse) return Direction::kWorse;
    better = better || measure.direction == Direction::kBetter;
  }
  return better ? Direction::kBetter : Direction::kSame;
}

// What is known of a case's insides: from its trace, or only its parts from a history.
struct Evidence {
  std::vector<Part> parts;
  std::map<std::string, trace::Alive> alive;  // empty without a trace
  std::string problem;                        // why nothing is known
};

// A trace that was left from another run must explain nothing.
bool belongs(const std::vector<Part>& parts, const Memory& memory) {
  std::map<std::string, std::int64_t> sums;
  for (const auto& part : parts) sums[part.phase] += part.block_bytes;
  return std::ranges::all_of(memory.phases, [&](const auto& phase) {
    return value_or_none(sums, phase.first) == phase.second.peak_allocated_bytes;
  });
}

Evidence evidence_of(const Source& source, const records::CaseResult& result) {
  Evidence found;
  try {
    if (const auto path = records::trace_file(result, source.folder); files::is_there(path)) {
      const auto trace = trace::read_trace(path);
      found.alive = alive_at_maxima(trace);
      found.parts = parts_of(trace);
      if (!belongs(found.parts, *result.memory))
        found.problem = path + " does not have run.json's peaks: it is of another run";
      return found;
    }
  } catch (const std::runtime_error& error) {
    found.problem = error.what();
    return found;
  }
  const auto known = std::ranges::find_if(
      source.parts, [&](const CaseParts& one) { return one.case_id == result.spec.id; });
  if (known != source.parts.end()) {
    found.parts = known->parts;
  } else {
    found.problem = source.label + " has no trace of this case";
  }
  return found;
}

bool grew_more(const Growth& a, const Growth& b) {
  return std::tie(a.block_bytes, a.requested_bytes) > std::tie(b.block_bytes, b.requested_bytes);
}

PhaseGrowth explain(const Evidence& base, const std::string& base_phase, const Evidence& now,
                    const std::string& phase, Direction direction) {
  PhaseGrowth growth;
  growth.phase = phase;
  growth.base_phase = base_phase;
  growth.direction = direction;
  growth.parts = differences_of(base.parts, now.parts, base_phase, phase);
  std::ranges::stable_sort(growth.parts, grew_more);
  for (const auto& part : growth.parts) {
    growth.requested_bytes += part.requested_bytes;
    growth.block_bytes += part.block_bytes;
  }
  const bool traced = !base.alive.empty() && !now.alive.empty();
  if (traced)
    growth.appeared =
        differences_of(value_or_none(base.alive, base_phase), value_or_none(now.alive, phase));
  growth.causes =
      traced ? causes_of(growth.appeared) : causes_of(base.parts, now.parts, base_phase, phase);
  return growth;
}

// The peak is the maximum of its phase, whose parts are known: where a record says so.
bool is_maximum_of_its_phase(const Memory& memory) {
  return value_or_none(memory.phases, memory.peak_phase).peak_allocated_bytes ==
         memory.peak_allocated_bytes;
}

void add_growth(const Source& base, const records::CaseResult& before, const Source& now,
                const records::CaseResult& after, CaseComparison& found) {
  std::vector<std::string> changed;
  bool peak_changed = false;
  for (const auto& measure : found.measures) {
    if (measure.direction == Direction::kSame) continue;
    peak_changed = peak_changed || (measure.where == "peak" && measure.space.empty());
    if (measure.where != "peak" && std::ranges::find(changed, measure.where) == changed.end())
      changed.push_back(measure.where);
  }
  if (changed.empty() && !peak_changed) return;
  const auto of_base = evidence_of(base, before), of_now = evidence_of(now, after);
  for (const auto* evidence : {&of_base, &of_now})
    if (!evidence->problem.empty())
      found.growth_note += (found.growth_note.empty() ? "" : "; ") + evidence->problem;
  if (!found.growth_note.empty()) return;
  if (peak_changed && is_maximum_of_its_phase(*before.memory) &&
      is_maximum_of_its_phase(*after.memory))
    found.at_peak = explain(of_base, before.memory->peak_phase, of_now, after.memory->peak_phase,
                            worst(found.measures, "peak"));
  for (const auto& phase : changed)
    found.growth.push_back(explain(of_base, phase, of_now, phase, worst(found.measures, phase)));
}

}  // namespace

void compare_memory(const Source& base, const records::CaseResult& before, const Source& now,
                    const records::CaseResult& after, const Policy& policy, CaseComparison& found) {
  const bool peaks_only = base.peaks_only || now.peaks_only;
  found.measures = measures_of(before, after, policy, peaks_only);
  found.memory = worst(found.measures);
  const auto &parts_before = before.memory->at_peak, &parts_after = after.memory->at_peak;
  if (!peaks_only || (!parts_before.empty() && !parts_after.empty()))
    for (const auto& category : reports::in_stacking_order(keys_of_both(parts_before, parts_after)))
      found.categories.push_back(
          {category, value_or_none(parts_before, category), value_or_none(parts_after, category)});
  if (!peaks_only)
    add_growth(base, before, now, after, found);
  else if (found.memory != Direction::kSame && found.categories.empty())
    found.growth_note =
        "what `peakbench emulate --json` wrote does not say what fills the peak; `peakbench trace` "
        "does";
  if (records::facts_of(after.spec.kind).has_lines)
    compare_programs(base, before, now, after, found);
}

}  // namespace peakbench::compare
