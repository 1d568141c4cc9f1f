// What is alive at the peak and looks like a mistake there.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "reports/analysis/findings.h"
#include "trace/timeline.h"

namespace peakbench::analysis {
namespace {

using trace::Category;
using trace::Lifetime;
using trace::Phase;
using trace::ScopeKind;

// Evaluations in the order in which they begin: whether a graph was recorded that no backward runs,
// and which lines made what is alive at the peak. Calls in training whose graph no backward runs
// are among them: an evaluation of a model that nobody told to evaluate.
class Evaluations {
 public:
  explicit Evaluations(const trace::Trace& trace) {
    auto phase = Phase::kBuild;
    for (const auto& mark : trace.scopes) {
      if (mark.kind == ScopeKind::kPhase) {
        const bool ends_call = !all_.empty() && all_.back().is_call;
        if (ends_call) all_.back().end = mark.event;
        if (ends_call || mark.phase == Phase::kEvaluation) all_.push_back({mark.event});
        phase = mark.phase;
      }
      if (mark.kind != ScopeKind::kModule) continue;
      if (phase == Phase::kForward) all_.push_back({.begin = mark.event, .is_call = true});
      if (phase == Phase::kForward || phase == Phase::kEvaluation) all_.back().has_graph = true;
    }
  }

  void add(const Lifetime& lifetime, const trace::Event& event) {
    const auto after = std::ranges::upper_bound(all_, lifetime.first, {}, &Evaluation::begin);
    if (after == all_.begin() || !std::prev(after)->has_graph) return;
    auto& evaluation = *std::prev(after);
    if (evaluation.is_call ? !is_of_call(evaluation, lifetime, event)
                           : !is_of_evaluation(lifetime, event))
      return;
    evaluation.made.push_back(&lifetime);
    if (evaluation.is_call || event.phase == Phase::kEvaluation)
      evaluation.stacks.insert(event.stack);
  }
  // Of a graph, several lines of the call: one alone is an output, which is kept without a graph as
  // well, and so is what is made of it behind the call.
  void add_graphs_to(ByLine& found) const {
    for (const auto& evaluation : all_)
      if (evaluation.stacks.size() > 1)
        for (const auto* lifetime : evaluation.made) found.add(*lifetime);
  }

 private:
  struct Evaluation {
    std::uint64_t begin = 0, end = ~std::uint64_t{0};
    bool has_graph = false, is_call = false;
    std::vector<const Lifetime*> made = {};
    std::set<std::int32_t> stacks = {};
  };

  // What the call leaves: the rest is gone without a graph as well.
  static bool is_of_call(const Evaluation& call, const Lifetime& lifetime,
                         const trace::Event& event) {
    return event.phase == Phase::kForward && lifetime.last > call.end;
  }
  static bool is_of_evaluation(const Lifetime& lifetime, const trace::Event& event) {
    if (lifetime.category == Category::kTemporary) return false;
    return event.phase == Phase::kEvaluation ||
           (event.phase == Phase::kData && lifetime.category == Category::kActivation);
  }

  std::vector<Evaluation> all_;
};

}  // namespace

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

std::vector<Finding> find_evaluation(const Program& program) {
  constexpr std::int64_t kLeastShareOfOutputs = 100;
  Evaluations evaluations(program.trace);
  for (const auto& lifetime : program.lifetimes) {
    if (lifetime.first > program.peak.event) break;
    const bool counts = lifetime.category == Category::kActivation ||
                        lifetime.category == Category::kKept ||
                        lifetime.category == Category::kTemporary;
    if (counts && is_at_peak(program, lifetime) && is_own(program, lifetime))
      evaluations.add(lifetime, event_of(program, lifetime));
  }
  ByLine found(program);
  evaluations.add_graphs_to(found);
  return of_all_lines(program, FindingKind::kEvaluation, found, kLeastShareOfOutputs,
                      {"activations of an evaluation, kept for a backward that never comes",
                       "was torch.no_grad() forgotten?"});
}

namespace {

// Of each event, whether it is within a scope of this kind on its thread.
class Within {
 public:
  Within(const trace::Trace& trace, ScopeKind kind) {
    for (const auto& mark : trace.scopes)
      if (mark.kind == kind) marks_[mark.thread].push_back(&mark);
  }
  bool holds(std::uint64_t number, const trace::Event& event) const {
    const auto marks = marks_.find(event.thread);
    if (marks == marks_.end()) return false;
    const auto after = std::ranges::upper_bound(marks->second, number, {},
                                                [](const auto* mark) { return mark->event; });
    return after != marks->second.begin() && !(*std::prev(after))->ends;
  }

 private:
  std::map<std::int32_t, std::vector<const trace::ScopeMark*>> marks_;
};

// What forwards copied and is alive at the peak, but for what is too small to matter.
std::vector<Finding> find_copies(const Program& program, ScopeKind kind, FindingKind finding,
                                 Saying words) {
  const Within copies(program.trace, kind);
  ByLine found(program);
  for (const auto& lifetime : program.lifetimes) {
    if (lifetime.first > program.peak.event) break;
    const auto& event = event_of(program, lifetime);
    const bool counts =
        event.phase == Phase::kForward && is_own(program, lifetime) &&
        is_at_peak(program, lifetime) && lifetime.category != Category::kParameter &&
        lifetime.category != Category::kInput && copies.holds(lifetime.first, event);
    if (counts) found.add(lifetime);
  }
  return of_all_lines(program, finding, found, kLeastShareOfCopies, words);
}

}  // namespace

std::vector<Finding> find_larger_copies(const Program& program) {
  return find_copies(program, ScopeKind::kLargerCopy, FindingKind::kConversion,
                     {"copies in a larger dtype",
                      "is .float() (or autocast's copy) needed there? Everything computed from "
                      "such a copy is as large. Of logits, compute the loss in chunks."});
}

std::vector<Finding> find_frozen_copies(const Program& program) {
  return find_copies(
      program, ScopeKind::kFrozenCopy, FindingKind::kFrozen,
      {"copies of frozen parameters in a smaller dtype",
       "load these parameters in that dtype, and nothing is copied: from_pretrained(..., "
       "torch_dtype=torch.bfloat16), for example."});
}

std::vector<Finding> find_elsewhere(const Program& program) {
  constexpr const char* kElsewhere = " of a parameter on ";  // as tracer/python says it
  ByLine found(program);
  for (const auto& lifetime : program.lifetimes) {
    const bool counts = lifetime.category == Category::kOptimizerState &&
                        is_own(program, lifetime) && is_at_peak(program, lifetime);
    if (counts && name_of(program, lifetime).find(kElsewhere) != std::string::npos)
      found.add(lifetime);
  }
  return of_all_lines(
      program, FindingKind::kElsewhere, found, kLeastShare,
      {"optimizer state of parameters that are on another device",
       "is it meant to be where its parameters are? Make it by torch.zeros_like(parameter)."});
}

namespace {

// The last event at which an input counts: of those that are made for a step and kept longer, its
// end. What the first step makes may be for all of them.
std::uint64_t end_of_input(const Program& program, const Lifetime& lifetime) {
  const auto made = program.steps.index_of(event_of(program, lifetime).step);
  if (!made || *made == 0 || *made + 1 >= program.steps.count()) return lifetime.last;
  return std::min(lifetime.last, program.steps.begin(*made + 1));
}

// Whether an evaluation or a generation comes behind it, and no forward: then it is that one's.
bool is_of_evaluation(const std::vector<trace::PhaseSpan>& spans, const Lifetime& lifetime) {
  auto span = std::ranges::upper_bound(spans, lifetime.first, {}, &trace::PhaseSpan::first);
  while (span != spans.end() && span->phase == Phase::kData) ++span;
  return span != spans.end() &&
         (span->phase == Phase::kEvaluation || span->phase == Phase::kGeneration);
}

// Where calls in training begin whose graph no backward runs.
std::vector<std::uint64_t> unused_calls(const trace::Trace& trace) {
  auto phase = Phase::kBuild;
  std::vector<std::uint64_t> begins;
  for (const auto& mark : trace.scopes) {
    if (mark.kind == ScopeKind::kPhase) phase = mark.phase;
    if (mark.kind == ScopeKind::kModule && phase == Phase::kForward) begins.push_back(mark.event);
  }
  return begins;
}

// Whether such a call comes behind it, and no module asks for memory before: then it is that one's.
bool is_of_unused_call(const trace::Trace& trace, const std::vector<std::uint64_t>& calls,
                       const Lifetime& lifetime) {
  const auto call = std::ranges::upper_bound(calls, lifetime.first);
  if (call == calls.end()) return false;
  for (auto event = lifetime.first + 1; event < *call; ++event)
    if (trace.events[event].module != trace::kNone) return false;
  return true;
}

// The most that inputs hold in the forward of each step: bytes that were asked for, as a block may
// be larger for reasons of its own.
std::vector<std::int64_t> inputs_of_steps(const Program& program) {
  const auto spans = trace::phase_spans(program.trace);
  const auto calls = unused_calls(program.trace);
  std::vector<std::pair<std::uint64_t, std::int64_t>> changes;
  for (const auto& lifetime : program.lifetimes) {
    if (lifetime.category != Category::kInput || !is_own(program, lifetime)) continue;
    if (is_of_evaluation(spans, lifetime) || is_of_unused_call(program.trace, calls, lifetime))
      continue;
    const auto bytes = event_of(program, lifetime).requested_bytes;
    changes.emplace_back(lifetime.first, bytes);
    changes.emplace_back(end_of_input(program, lifetime), -bytes);
  }
  std::ranges::sort(changes);
  std::vector<std::int64_t> most(program.steps.count());
  std::int64_t alive = 0;
  auto change = changes.begin();
  for (const auto& span : spans) {
    const auto step = program.steps.index_of(span.step);
    for (auto event = span.first; event < span.last; ++event) {
      for (; change != changes.end() && change->first <= event; ++change) alive += change->second;
      if (step && span.phase == Phase::kForward) most[*step] = std::max(most[*step], alive);
    }
  }
  return most;
}

// Whether an input that is alive at the peak is larger than all that are not.
bool has_larger_input(const Program& program) {
  std::int64_t there = 0, elsewhere = 0;
  for (const auto& lifetime : program.lifetimes) {
    if (lifetime.category != Category::kInput || !is_own(program, lifetime)) continue;
    auto& largest = is_at_peak(program, lifetime) ? there : elsewhere;
    largest = std::max(largest, event_of(program, lifetime).requested_bytes);
  }
  return there > elsewhere;
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
      "those of step {3} ({4}{5}). {6}",
      in_words(program.peak.allocated_bytes), program.peak.step + 1, times,
      program.steps.number(*at - 1) + 1, in_words(inputs[*at]), made_at,
      has_larger_input(program)
          ? "Limit the size of a batch (max_length of a tokenizer, or a number of tokens)."
          : "It has more of them, and no larger one.");
  return {finding};
}

namespace {

// Whether the sizes of the steps can be why blocks are not used again: they differ, what they make
// is much of the peak, and no other stream or kind of segment has a part in it.
bool follows_the_inputs(const Program& program, const std::set<std::int64_t>& sizes) {
  constexpr std::size_t kLeastSizes = 3;
  if (sizes.size() < kLeastSizes || *sizes.rbegin() < 2 * *sizes.begin()) return false;
  const auto activations =
      program.peak.by_category[static_cast<std::size_t>(Category::kActivation)];
  if (activations * 4 < program.peak.allocated_bytes) return false;
  return std::ranges::none_of(program.trace.events, [](const auto& event) {
    return event.kind == trace::EventKind::kSegmentMap || event.stream > 0;
  });
}

}  // namespace

std::vector<Finding> find_reserved(const Program& program) {
  constexpr std::int64_t kLeastBytes = 100 << 20;
  if (!program.reserved_bytes) return {};
  const auto reserved = *program.reserved_bytes;
  const auto more =
      reserved - program.peak.allocated_bytes - trace::private_pools(program.trace).private_bytes;
  if (more < kLeastBytes || more * 4 < reserved) return {};
  std::set<std::int64_t> sizes;
  for (const auto bytes : inputs_of_steps(program))
    if (bytes > 0) sizes.insert(bytes);
  if (!follows_the_inputs(program, sizes)) return {};
  Finding finding{FindingKind::kReserved, "", more, 0, {}};
  finding.sentence = fmt::format(
      "{} is reserved, and at most {} is allocated. The inputs of the steps have {} sizes ({} to "
      "{}), and blocks of one size often do not fit another. Try "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or fewer sizes.",
      in_words(reserved), in_words(program.peak.allocated_bytes), sizes.size(),
      in_words(*sizes.begin()), in_words(*sizes.rbegin()));
  return {finding};
}

}  // namespace peakbench::analysis
