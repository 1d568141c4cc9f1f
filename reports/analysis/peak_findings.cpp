// What is alive at the peak and looks like a mistake there.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "reports/analysis/by_line.h"
#include "trace/timeline.h"

namespace peakbench::analysis {
namespace {

using trace::Category;
using trace::Lifetime;
using trace::Phase;
using trace::ScopeKind;

// Where evaluations begin, and whether gradients are recorded there.
class Evaluations {
 public:
  explicit Evaluations(const trace::Trace& trace) {
    for (const auto& mark : trace.scopes) {
      const bool evaluates = mark.kind == ScopeKind::kPhase && mark.phase == Phase::kEvaluation;
      if (evaluates) begins_.emplace_back(mark.event, false);
      if (mark.kind == ScopeKind::kPhase) is_open_ = evaluates;
      if (mark.kind == ScopeKind::kModule && is_open_) begins_.back().second = true;
    }
  }
  // Of the last one that began before this event.
  bool has_gradients(std::uint64_t event) const {
    const auto after =
        std::ranges::upper_bound(begins_, event, {}, [](const auto& begin) { return begin.first; });
    return after != begins_.begin() && std::prev(after)->second;
  }

 private:
  std::vector<std::pair<std::uint64_t, bool>> begins_;
  bool is_open_ = false;
};

struct Saying {
  const char* what;  // as it follows "35.0 MiB of the peak's 0.259 GiB is"
  const char* advice;
};

// One for all lines, which names the largest; none where it is less than that share of the peak.
std::vector<Finding> of_all_lines(const Program& program, FindingKind kind, const ByLine& found,
                                  std::int64_t least_share, Saying words) {
  const auto largest = found.largest(1);
  if (largest.empty() || found.total() < least(program, least_share)) return {};
  const auto line = largest.front();
  const auto part = found.of(line) == found.total() ? "" : in_words(found.of(line)) + " of it ";
  return {{kind,
           fmt::format("{}{} is {}: {}made at {}; {}", in_words(found.total()),
                       of_the_peak(program), words.what, part, found.in_words(line), words.advice),
           found.total(), found.total(), program.lines.at(line)}};
}

}  // namespace

std::vector<Finding> find_evaluation(const Program& program) {
  constexpr std::int64_t kLeastShareOfOutputs = 100;
  const Evaluations evaluations(program.trace);
  ByLine found(program);
  for (const auto& lifetime : program.lifetimes) {
    if (lifetime.first > program.peak.event) break;
    const auto phase = event_of(program, lifetime).phase;
    const bool in_evaluation =
        phase == Phase::kEvaluation ||
        (phase == Phase::kData && lifetime.category == Category::kActivation);
    const bool counts = in_evaluation && (lifetime.category == Category::kActivation ||
                                          lifetime.category == Category::kKept);
    if (counts && is_at_peak(program, lifetime) && is_own(program, lifetime) &&
        evaluations.has_gradients(lifetime.first))
      found.add(lifetime);
  }
  return of_all_lines(program, FindingKind::kEvaluation, found, kLeastShareOfOutputs,
                      {"activations of an evaluation, kept for a backward that never comes",
                       "was torch.no_grad() forgotten?"});
}

namespace {

// Whether a copy by `_to_copy` is twice (or four times) what it was made of: what is alive then and
// was made last, of the sizes that another dtype can make of it.
bool is_larger_copy(const Program& program, std::size_t number) {
  constexpr std::size_t kLookedAt = 256;
  const auto& copy = program.lifetimes[number];
  const auto bytes = event_of(program, copy).requested_bytes;
  for (std::size_t i = number, end = number > kLookedAt ? number - kLookedAt : 0; i-- > end;) {
    const auto& before = program.lifetimes[i];
    if (before.last < copy.first || !is_own(program, before)) continue;
    const auto size = event_of(program, before).requested_bytes;
    if (size * 2 == bytes || size * 4 == bytes) return true;
    if (size == bytes || size == bytes * 2 || size == bytes * 4) return false;
  }
  return false;
}

}  // namespace

std::vector<Finding> find_conversion(const Program& program) {
  constexpr std::int64_t kLeastShareOfCopies = 20;
  const auto& operators = program.trace.operators;
  const auto copies = std::ranges::find(operators, "aten::_to_copy") - operators.begin();
  ByLine found(program);
  for (std::size_t i = 0; i < program.lifetimes.size(); ++i) {
    const auto& lifetime = program.lifetimes[i];
    if (lifetime.first > program.peak.event) break;
    const auto& event = event_of(program, lifetime);
    const bool counts =
        event.op == copies && event.phase == Phase::kForward && is_own(program, lifetime) &&
        is_at_peak(program, lifetime) && lifetime.category != Category::kParameter &&
        lifetime.category != Category::kInput && event.block_bytes >= least(program);
    if (counts && is_larger_copy(program, i)) found.add(lifetime);
  }
  return of_all_lines(program, FindingKind::kConversion, found, kLeastShareOfCopies,
                      {"copies in a larger dtype",
                       "is .float() (or what autocast does) needed there? What is made of such a "
                       "copy is as large."});
}

std::vector<Finding> find_elsewhere(const Program& program) {
  constexpr const char* kElsewhere = " of a parameter on ";  // as tracer/python says it
  ByLine found(program);
  for (const auto& lifetime : program.lifetimes) {
    const bool counts = lifetime.category == Category::kOptimizerState &&
                        lifetime.name != trace::kNone && is_own(program, lifetime) &&
                        is_at_peak(program, lifetime);
    if (!counts) continue;
    const auto& name = program.trace.names[static_cast<std::size_t>(lifetime.name)].name;
    if (name.find(kElsewhere) != std::string::npos) found.add(lifetime);
  }
  return of_all_lines(program, FindingKind::kElsewhere, found, kLeastShare,
                      {"optimizer state of parameters that are on another device",
                       "is it meant to be where its parameters are?"});
}

namespace {

// The last event at which an input counts: of those that are made for a step and kept longer, its
// end. What the first step makes may be for all of them.
std::uint64_t end_of_input(const Program& program, const Lifetime& lifetime) {
  const auto made = program.steps.index_of(event_of(program, lifetime).step);
  if (!made || *made == 0 || *made + 1 >= program.steps.count()) return lifetime.last;
  return std::min(lifetime.last, program.steps.begin(*made + 1));
}

// The most that inputs hold in the forward of each step.
std::vector<std::int64_t> inputs_of_steps(const Program& program) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> changes;
  for (const auto& lifetime : program.lifetimes) {
    if (lifetime.category != Category::kInput || !is_own(program, lifetime)) continue;
    const auto bytes = event_of(program, lifetime).block_bytes;
    changes.emplace_back(lifetime.first, bytes);
    changes.emplace_back(end_of_input(program, lifetime), -bytes);
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
  std::int64_t of_step = 0;  // what follows the batch's size
  std::int64_t alive = 0;
  for (const auto& lifetime : program.lifetimes) {
    if (!is_own(program, lifetime) || !is_at_peak(program, lifetime)) continue;
    const auto& event = event_of(program, lifetime);
    if (lifetime.category == Category::kInput) {
      found.add(lifetime);
      alive += event.block_bytes;
    }
    if (event.step == program.peak.step &&
        (lifetime.category == Category::kActivation || lifetime.category == Category::kTemporary))
      of_step += event.block_bytes;
  }
  if (alive == 0) return {};  // the peak was before them, or after
  const auto times = static_cast<double>(inputs[*at]) / static_cast<double>(before);
  // At the size of the step before there would be that much less, about.
  const auto more = static_cast<std::int64_t>(static_cast<double>(of_step) * (1 - 1 / times));
  Finding finding{FindingKind::kInputs, "", inputs[*at], more, {}};
  std::string made_at;
  if (const auto largest = found.largest(1); !largest.empty()) {
    finding.line = program.lines.at(largest.front());
    made_at = ", made at " + found.in_words(largest.front());
  }
  finding.sentence = fmt::format(
      "The peak of {0} is in step {1}, whose inputs are larger than other steps': {2:.1f} times "
      "those of step {3} ({4}{5}).",
      in_words(program.peak.allocated_bytes), program.peak.step + 1, times,
      program.steps.number(*at - 1) + 1, in_words(inputs[*at]), made_at);
  return {finding};
}

}  // namespace peakbench::analysis
