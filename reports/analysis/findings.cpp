#include "reports/analysis/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "trace/timeline.h"
#include "units/bytes.h"

namespace peakbench::analysis {
namespace {

using trace::Category;
using trace::Lifetime;
using trace::Phase;

constexpr std::size_t kMostLines = 3;  // a finding of more is a table
constexpr std::int64_t kLeastShare = 1000, kLeastShareOfOutputs = 100;

// Bytes by line, over the allocations that are added.
class ByLine {
 public:
  explicit ByLine(const Program& program) : program_(program), bytes_(program.lines.size()) {}

  void add(const Lifetime& lifetime, int sign = 1) {
    const auto& event = program_.trace.events[lifetime.first];
    bytes_[program_.lines.of(event.stack)] += sign * event.block_bytes;
    total_ += sign * event.block_bytes;
  }
  std::int64_t total() const { return total_; }
  std::int64_t of(std::size_t line) const { return bytes_[line]; }

  // Lines that are known and hold at least so much, the largest first.
  std::vector<std::size_t> largest(std::int64_t least) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 1; i < bytes_.size(); ++i)
      if (bytes_[i] > 0 && bytes_[i] >= least) found.push_back(i);
    std::stable_sort(found.begin(), found.end(),
                     [this](std::size_t a, std::size_t b) { return bytes_[a] > bytes_[b]; });
    if (found.size() > kMostLines) found.resize(kMostLines);
    return found;
  }

 private:
  const Program& program_;
  std::vector<std::int64_t> bytes_;
  std::int64_t total_ = 0;
};

const trace::Event& event_of(const Program& program, const Lifetime& lifetime) {
  return program.trace.events[lifetime.first];
}

bool is_own(const Program& program, const Lifetime& lifetime) {
  return event_of(program, lifetime).space == program.trace.own_space;
}

// What may stay for the whole of a training.
bool belongs_to_training(Category category) {
  return category == Category::kParameter || category == Category::kGradient ||
         category == Category::kOptimizerState || category == Category::kBuffer ||
         category == Category::kWorkspace || category == Category::kInput;
}

std::int64_t least(const Program& program, std::int64_t share = kLeastShare) {
  return program.peak.allocated_bytes / share;
}

// A finding a line; `say` makes its sentence of the bytes and the line in words.
template <typename Say>
std::vector<Finding> told(const Program& program, FindingKind kind, const ByLine& found,
                          std::int64_t at_least, Say say) {
  std::vector<Finding> findings;
  for (const auto line : found.largest(at_least)) {
    const auto& source = program.lines.at(line);
    findings.push_back({kind, say(in_words(found.of(line)), program.names.in_words(source)),
                        found.of(line), source});
  }
  return findings;
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

std::vector<Finding> find_growth(const Program& program) {
  constexpr std::size_t kLeastSteps = 3;
  const auto alive = levels(program);
  const auto stays = [](std::int64_t before, std::int64_t after) { return after <= before; };
  if (alive.size() < kLeastSteps ||
      std::adjacent_find(alive.begin(), alive.end(), stays) != alive.end())
    return {};
  ByLine grown(program);
  for (const auto& lifetime : program.lifetimes) {
    if (!is_own(program, lifetime) || lifetime.category == Category::kInput) continue;
    if (program.steps.is_alive(lifetime, 1)) grown.add(lifetime, -1);
    if (program.steps.is_alive(lifetime, program.steps.count() - 1)) grown.add(lifetime);
  }
  const auto steps = static_cast<std::int64_t>(alive.size()) - 1;
  const auto a_step = (alive.back() - alive.front()) / steps;
  Finding finding{FindingKind::kGrowth, "", a_step, {}};
  finding.sentence = fmt::format("Memory grew by {} a step", in_words(a_step));
  if (const auto largest = grown.largest(1); !largest.empty()) {
    finding.line = program.lines.at(largest.front());
    const auto of_line = std::max<std::int64_t>(1, grown.of(largest.front()) / steps);
    finding.sentence += of_line == a_step ? ": " : fmt::format(", {} of it by ", in_words(of_line));
    finding.sentence += program.names.in_words(finding.line);
  }
  finding.sentence += ".";
  return {finding};
}

std::vector<Finding> find_evaluation(const Program& program) {
  ByLine found(program);
  for (const auto& lifetime : program.lifetimes) {
    if (lifetime.first > program.peak.event) break;
    const bool counts =
        lifetime.category == Category::kActivation || lifetime.category == Category::kKept;
    if (counts && lifetime.last > program.peak.event && is_own(program, lifetime) &&
        event_of(program, lifetime).phase == Phase::kEvaluation)
      found.add(lifetime);
  }
  const auto largest = found.largest(1);
  if (largest.empty() || found.total() < least(program, kLeastShareOfOutputs)) return {};
  const auto& line = program.lines.at(largest.front());
  const auto of_line = found.of(largest.front());
  const auto part = of_line == found.total() ? "" : ", " + in_words(of_line) + " of it";
  return {{FindingKind::kEvaluation,
           fmt::format("A forward in evaluation keeps its activations: {}{} made at {}; was "
                       "torch.no_grad() forgotten?",
                       in_words(found.total()), part, program.names.in_words(line)),
           found.total(), line}};
}

std::vector<Finding> find_kept(const Program& program, const std::vector<Finding>& grown) {
  // Of each step's beginning, what is there of steps before the last one; told where it is most.
  const auto is_kept = [&](const Lifetime& lifetime, std::size_t index) {
    const auto made = program.steps.index_of(event_of(program, lifetime).step);
    return made && *made + 2 <= index && program.steps.is_alive(lifetime, index);
  };
  std::vector<const Lifetime*> candidates;
  for (const auto& lifetime : program.lifetimes) {
    const auto made = program.steps.index_of(event_of(program, lifetime).step);
    if (is_own(program, lifetime) && !belongs_to_training(lifetime.category) && made &&
        *made + 2 < program.steps.count() && is_kept(lifetime, *made + 2))
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
    if (level > highest) {
      highest = level;
      most = i;
    }
  }
  if (highest == 0) return {};
  ByLine found(program);
  for (const auto* lifetime : candidates)
    if (is_kept(*lifetime, most)) found.add(*lifetime);
  auto findings =
      told(program, FindingKind::kKept, found, least(program),
           [](const std::string& bytes, const std::string& line) {
             return fmt::format("{} made at {} is still alive two steps later: something keeps it.",
                                bytes, line);
           });
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
  return told(program, FindingKind::kCheckpoint, *worst, least(program),
              [](const std::string& bytes, const std::string& line) {
                return fmt::format("A checkpoint leaves {} allocated, made at {}.", bytes, line);
              });
}

namespace {

// The most that inputs hold in the forward of each step.
std::vector<std::int64_t> inputs_of_steps(const Program& program) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> changes;
  for (const auto& lifetime : program.lifetimes) {
    if (lifetime.category != Category::kInput || !is_own(program, lifetime)) continue;
    changes.emplace_back(lifetime.first, event_of(program, lifetime).block_bytes);
    changes.emplace_back(lifetime.last, -event_of(program, lifetime).block_bytes);
  }
  std::sort(changes.begin(), changes.end());
  std::vector<std::int64_t> most(program.steps.count());
  std::int64_t alive = 0;
  auto change = changes.begin();
  for (const auto& span : trace::phase_spans(program.trace)) {
    const auto step = program.steps.index_of(span.step);
    for (auto event = span.first; event < span.last; ++event) {
      for (; change != changes.end() && change->first <= event; ++change) alive += change->second;
      if (step && span.phase == Phase::kForward) most[*step] = std::max(most[*step], alive);
    }
  }
  return most;
}

}  // namespace

std::vector<Finding> find_inputs(const Program& program) {
  constexpr double kLeastTimes = 1.05;
  const auto at = program.steps.index_of(program.peak.step);
  if (!at || *at == 0) return {};
  const auto inputs = inputs_of_steps(program);
  std::int64_t others = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (i != *at) others = std::max(others, inputs[i]);
  const auto before = inputs[*at - 1];
  if (before == 0 || static_cast<double>(inputs[*at]) < kLeastTimes * static_cast<double>(others))
    return {};
  ByLine found(program);
  for (const auto& lifetime : program.lifetimes)
    if (lifetime.category == Category::kInput && is_own(program, lifetime) &&
        lifetime.first <= program.peak.event && lifetime.last > program.peak.event)
      found.add(lifetime);
  Finding finding{FindingKind::kInputs, "", inputs[*at], {}};
  if (const auto largest = found.largest(1); !largest.empty())
    finding.line = program.lines.at(largest.front());
  finding.sentence = fmt::format(
      "The peak is in step {0}, whose inputs are larger than other steps': step {0}'s inputs are "
      "{1:.1f} times those of step {2} ({3}{4}).",
      program.peak.step + 1, static_cast<double>(inputs[*at]) / static_cast<double>(before),
      program.steps.number(*at - 1) + 1, in_words(inputs[*at]),
      finding.line.file.empty() ? "" : ", made at " + program.names.in_words(finding.line));
  return {finding};
}

}  // namespace peakbench::analysis
