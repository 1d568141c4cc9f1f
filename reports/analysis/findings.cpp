#include "reports/analysis/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "reports/analysis/by_line.h"
#include "trace/timeline.h"
#include "units/bytes.h"

namespace peakbench::analysis {
namespace {

using trace::Category;
using trace::Lifetime;
using trace::Phase;

// What may stay for the whole of a training.
bool belongs_to_training(Category category) {
  return category == Category::kParameter || category == Category::kGradient ||
         category == Category::kOptimizerState || category == Category::kBuffer ||
         category == Category::kWorkspace || category == Category::kInput;
}

// Alive when each step begins, from the second on; inputs follow the data.
std::vector<std::int64_t> levels(const Program& program) {
  const auto& steps = program.steps;
  std::vector<std::int64_t> changes(steps.count() + 1);
  for (const auto& lifetime : program.lifetimes) {
    if (!is_own(program, lifetime) || lifetime.category == Category::kInput) continue;
    const auto from = steps.first_after(lifetime.first), to = steps.first_after(lifetime.last);
    if (from >= to) continue;
    changes[from] += event_of(program, lifetime).block_bytes;
    changes[to] -= event_of(program, lifetime).block_bytes;
  }
  std::vector<std::int64_t> found;
  std::int64_t level = 0;
  for (std::size_t i = 0; i < steps.count(); ++i) {
    level += changes[i];
    if (i > 0) found.push_back(level);
  }
  return found;
}

}  // namespace

std::string in_words(std::int64_t bytes) { return size_text(static_cast<std::uint64_t>(bytes)); }

namespace {

// What a step kept for later ones: not what was made before any model was called.
bool was_kept(const Program& program, const Lifetime& lifetime) {
  return is_own(program, lifetime) && lifetime.category == Category::kKept &&
         lifetime.first >= program.first_call;
}

// Of what grew: what is there at the end and was not at the beginning.
struct Growth {
  ByLine lines;
  std::map<std::size_t, std::set<std::int32_t>> made_in = {};  // by line: the steps
  std::size_t count = 0, of_forward = 0;
};

Growth growth_of(const Program& program) {
  Growth growth{ByLine(program)};
  for (const auto& lifetime : program.lifetimes) {
    if (!is_own(program, lifetime) || lifetime.category == Category::kInput) continue;
    const bool before = program.steps.is_alive(lifetime, 1);
    const bool after = program.steps.is_alive(lifetime, program.steps.count() - 1);
    if (before) growth.lines.add(lifetime, -1);
    if (after) growth.lines.add(lifetime);
    if (before || !after) continue;
    ++growth.count;
    const auto& event = event_of(program, lifetime);
    growth.made_in[program.lines.of(event.stack)].insert(event.step);
    growth.of_forward += event.phase == Phase::kForward ? 1 : 0;
  }
  return growth;
}

// What autograd saved, where several tensors of a forward stay; one alone is its output.
bool is_a_graph(const Growth& growth, std::size_t steps) {
  return growth.of_forward * 2 > growth.count && growth.of_forward >= 2 * steps;
}

// What steps kept, by line: all of it, whenever it was let go.
ByLine kept_by_line(const Program& program) {
  ByLine kept(program);
  for (const auto& lifetime : program.lifetimes)
    if (was_kept(program, lifetime)) kept.add(lifetime);
  return kept;
}

// Of the lines that add to it in every step: another may keep something once.
std::int64_t at_peak_of(const Program& program, const Growth& growth, std::size_t increases) {
  const auto kept = kept_by_line(program);
  std::int64_t bytes = 0;
  for (const auto& [line, steps] : growth.made_in)
    if (steps.size() >= increases) bytes += kept.at_peak(line);
  return bytes;
}

}  // namespace

std::vector<Finding> find_growth(const Program& program) {
  constexpr std::size_t kLeastSteps = 3;
  auto increases = levels(program);
  if (increases.size() < kLeastSteps) return {};
  std::adjacent_difference(increases.begin(), increases.end(), increases.begin());
  increases.erase(increases.begin());
  std::ranges::sort(increases);
  const auto steps = static_cast<std::int64_t>(increases.size());
  const auto a_step = increases[increases.size() / 2];  // one step may keep much for itself
  if (increases.front() <= 0 || increases.front() * steps < least(program)) return {};
  const auto grown = growth_of(program);
  Finding finding{FindingKind::kGrowth, "", a_step, 0, {}};
  finding.at_peak_bytes = at_peak_of(program, grown, increases.size());
  finding.sentence = fmt::format("Memory grows by {} a step", in_words(a_step));
  if (finding.at_peak_bytes > 0)
    finding.sentence += ", to " + in_words(finding.at_peak_bytes) + of_the_peak(program);
  const auto largest = grown.lines.largest(1);
  if (!largest.empty()) {
    finding.line = program.lines.at(largest.front());
    const auto of_line = std::max<std::int64_t>(1, grown.lines.of(largest.front()) / steps);
    const auto part = in_words(of_line) == in_words(a_step) ? "" : in_words(of_line) + " of it ";
    finding.sentence += ": " + part + "made at " + grown.lines.in_words(largest.front());
  }
  finding.sentence +=
      is_a_graph(grown, increases.size())
          ? "; the graph of every step is kept: is a loss or an output added up or stored without "
            ".item() or .detach()?"
          : "; something keeps it: a list that grows?";
  return {finding};
}

namespace {

// How often a line left something that is alive then, and whether always where a checkpoint was
// saved.
struct Times {
  std::set<std::int32_t> steps;
  bool with_saves = true, is_a_store = false;       // of which some were let go before
  bool grows() const { return steps.size() >= 3; }  // fewer are copies of the best and the last
};

std::string sentence_of_kept(const Program& program, const ByLine& found, std::size_t line,
                             std::int64_t at_peak, const Times& times) {
  const auto bytes = found.of(line);
  if (!times.grows())
    return fmt::format("{} made at {} is still alive two steps later: something keeps it.",
                       in_words(bytes), found.in_words(line));
  const auto count = static_cast<std::int64_t>(times.steps.size());
  return fmt::format(
      "Memory grows by {} {}, to {}{}, made at {}: {}", in_words(bytes / count),
      times.with_saves ? "with each checkpoint" : "now and then", in_words(at_peak),
      of_the_peak(program), found.in_words(line),
      times.with_saves ? "is a copy of the state kept on the card?" : "something keeps it.");
}

}  // namespace

std::vector<Finding> find_kept(const Program& program, const std::vector<Finding>& grown) {
  // Of each step's beginning, what is there of steps before the last one; told where it is most.
  const auto is_kept = [&](const Lifetime& lifetime, std::size_t index) {
    const auto made = program.steps.index_of(event_of(program, lifetime).step);
    return made && *made + 2 <= index && program.steps.is_alive(lifetime, index);
  };
  std::vector<const Lifetime*> candidates;
  for (const auto& lifetime : program.lifetimes) {
    const auto made = program.steps.index_of(event_of(program, lifetime).step);
    if (is_own(program, lifetime) && lifetime.first >= program.first_call &&
        !belongs_to_training(lifetime.category) && made && *made + 2 < program.steps.count() &&
        is_kept(lifetime, *made + 2))
      candidates.push_back(&lifetime);
  }
  std::vector<std::int64_t> changes(program.steps.count() + 1);
  for (const auto* lifetime : candidates) {
    const auto bytes = event_of(program, *lifetime).block_bytes;
    changes[*program.steps.index_of(event_of(program, *lifetime).step) + 2] += bytes;
    changes[program.steps.first_after(lifetime->last)] -= bytes;
  }
  std::size_t most = 0;
  std::int64_t level = 0, highest = 0;
  for (std::size_t i = 0; i < program.steps.count(); ++i) {
    level += changes[i];
    if (level < highest || level == 0) continue;
    highest = level;
    most = i;
  }
  if (highest == 0) return {};
  std::set<std::int32_t> saving;
  for (const auto& mark : program.trace.scopes)
    if (mark.kind == trace::ScopeKind::kPhase && mark.phase == Phase::kCheckpoint)
      saving.insert(mark.step);
  ByLine found(program);
  std::map<std::size_t, Times> times;
  for (const auto* lifetime : candidates) {
    const auto& event = event_of(program, *lifetime);
    auto& line = times[program.lines.of(event.stack)];
    if (!is_kept(*lifetime, most)) {
      line.is_a_store = line.is_a_store || lifetime->first < program.steps.begin(most);
      continue;
    }
    found.add(*lifetime);
    line.steps.insert(event.step);
    line.with_saves = line.with_saves && saving.contains(event.step);
  }
  const auto kept = kept_by_line(program);
  std::vector<Finding> findings;
  for (const auto line : found.largest(least(program))) {
    if (times[line].is_a_store) continue;
    const auto at_peak = times[line].grows() ? kept.at_peak(line) : 0;
    findings.push_back({FindingKind::kKept,
                        sentence_of_kept(program, found, line, at_peak, times[line]),
                        found.of(line), at_peak, program.lines.at(line)});
  }
  std::erase_if(findings, [&](const Finding& finding) {
    return std::any_of(grown.begin(), grown.end(),
                       [&](const Finding& other) { return other.line == finding.line; });
  });
  return findings;
}

namespace {

// Whether it outlives the step after the one that it was made in; where that has no end, the trace.
bool outlives_next_step(const Program& program, const Lifetime& lifetime, std::int32_t step) {
  const auto& steps = program.steps;
  std::size_t next = 0;  // the first step after this one
  while (next < steps.count() && steps.number(next) <= step) ++next;
  if (next == steps.count()) return false;
  const auto end = next + 1 < steps.count() ? steps.begin(next + 1) : program.trace.events.size();
  return lifetime.last >= end;
}

}  // namespace

std::vector<Finding> find_checkpoint(const Program& program) {
  std::vector<trace::PhaseSpan> spans;
  for (const auto& span : trace::phase_spans(program.trace))
    if (span.phase == Phase::kCheckpoint) spans.push_back(span);
  constexpr std::size_t kMost = 64;  // each is a walk over all allocations
  if (spans.size() > kMost)
    spans.erase(spans.begin(), spans.end() - static_cast<std::ptrdiff_t>(kMost));
  std::optional<ByLine> worst;
  for (const auto& span : spans) {
    ByLine left(program);
    std::int64_t difference = 0;
    for (const auto& lifetime : program.lifetimes) {
      if (lifetime.first >= span.last) break;
      if (!is_own(program, lifetime) || lifetime.last < span.first) continue;
      const bool before = lifetime.first < span.first, after = lifetime.last >= span.last;
      const auto bytes = event_of(program, lifetime).block_bytes;
      if (before && !after) difference -= bytes;
      if (!before && after) difference += bytes;
      if (!before && after && !belongs_to_training(lifetime.category) &&
          outlives_next_step(program, lifetime, span.step))
        left.add(lifetime);
    }
    if (difference > 0 && left.total() > (worst ? worst->total() : 0)) worst.emplace(left);
  }
  if (!worst) return {};
  std::vector<Finding> findings;
  for (const auto line : worst->largest(least(program)))
    findings.push_back({FindingKind::kCheckpoint,
                        fmt::format("A checkpoint leaves {} allocated, made at {}.",
                                    in_words(worst->of(line)), worst->in_words(line)),
                        worst->of(line), worst->at_peak(line), program.lines.at(line)});
  return findings;
}

}  // namespace peakbench::analysis
