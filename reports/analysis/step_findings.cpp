#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "reports/analysis/findings.h"
#include "trace/timeline.h"

namespace peakbench::analysis {
// Outputs that a name keeps after their backward.

namespace {

using trace::Category;
using trace::Lifetime;
using trace::Phase;
using trace::PhaseSpan;

// "aten::mm"; empty where it is unknown.
std::string op_of(const Program& program, const Lifetime& lifetime) {
  return trace::word_at(program.trace.operators, event_of(program, lifetime).op);
}

bool is_of_forward(const Program& program, const Lifetime& lifetime) {
  const bool counts = lifetime.category == Category::kActivation ||
                      lifetime.category == Category::kKept ||
                      lifetime.category == Category::kTemporary;
  return counts && is_own(program, lifetime) && name_of(program, lifetime).empty() &&
         event_of(program, lifetime).phase == Phase::kForward;
}

// The backward that comes behind an event.
const PhaseSpan* backward_after(const std::vector<PhaseSpan>& spans, std::uint64_t event) {
  auto span = std::ranges::upper_bound(spans, event, {}, &PhaseSpan::first);
  while (span != spans.end() && span->phase != Phase::kBackward) ++span;
  return span == spans.end() ? nullptr : &*span;
}

// Where a backward frees it, a graph needs it.
bool is_freed_by_backward(const Program& program, const Lifetime& lifetime) {
  return lifetime.last < program.trace.events.size() &&
         program.trace.events[lifetime.last].phase == Phase::kBackward;
}

// Stacks of what is alive two steps later: a list has it, which is a finding of its own.
std::set<std::int32_t> stacks_of_lists(const Program& program) {
  std::set<std::int32_t> stacks;
  for (const auto& lifetime : program.lifetimes) {
    if (!is_of_forward(program, lifetime)) continue;
    const auto& event = event_of(program, lifetime);
    const auto made = program.steps.index_of(event.step);
    if (made && *made + 2 < program.steps.count() && program.steps.is_alive(lifetime, *made + 2))
      stacks.insert(event.stack);
  }
  return stacks;
}

// Logits: log_softmax makes as many numbers of them, and its backward reads its result alone.
class Logits {
 public:
  explicit Logits(const Program& program) : program_(program) {
    for (const auto& lifetime : program.lifetimes)
      if (op_of(program, lifetime) == "aten::_log_softmax") softmaxes_.push_back(&lifetime);
  }

  bool hold(const Lifetime& lifetime) const {
    if (op_of(program_, lifetime) == "aten::_log_softmax") return false;
    const auto& made = event_of(program_, lifetime);
    return std::ranges::any_of(softmaxes_, [&](const Lifetime* softmax) {
      const auto& event = event_of(program_, *softmax);
      return softmax->first > lifetime.first && event.step == made.step &&
             event.phase == Phase::kForward &&
             (event.requested_bytes == made.requested_bytes ||
              event.requested_bytes == 2 * made.requested_bytes);  // in fp32
    });
  }

 private:
  const Program& program_;
  std::vector<const Lifetime*> softmaxes_;
};

}  // namespace

namespace {

// A later backward, while it is alive, may need it: of another loss, or of another network.
bool may_be_needed_again(const std::vector<PhaseSpan>& spans, const PhaseSpan& backward,
                         const Lifetime& lifetime) {
  return std::ranges::any_of(spans, [&](const PhaseSpan& span) {
    return span.phase == Phase::kBackward && span.first > backward.last &&
           span.first < lifetime.last;
  });
}

}  // namespace

std::vector<Finding> find_outputs(const Program& program) {
  constexpr std::int64_t kLeastShareOfOutputs = 10;
  const auto spans = trace::phase_spans(program.trace);
  const auto lists = stacks_of_lists(program);
  const Logits logits(program);
  ByLine used(program), needless(program);
  for (const auto& lifetime : program.lifetimes) {
    if (lifetime.first > program.peak.event) break;
    if (!is_at_peak(program, lifetime) || !is_of_forward(program, lifetime)) continue;
    const auto* backward = backward_after(spans, lifetime.first);
    if (backward == nullptr || lifetime.last < backward->last ||
        is_freed_by_backward(program, lifetime) ||
        may_be_needed_again(spans, *backward, lifetime) ||
        lists.contains(event_of(program, lifetime).stack))
      continue;
    if (backward->last <= program.peak.event)
      used.add(lifetime);
    else if (backward->first <= program.peak.event && logits.hold(lifetime))
      needless.add(lifetime);
  }
  auto found =
      of_all_lines(program, FindingKind::kOutputs, used, kLeastShareOfOutputs,
                   {"outputs of a forward whose backward is over, which a variable still holds",
                    "`del` the variable (`del logits`) after loss.backward()"});
  for (auto& finding :
       of_all_lines(program, FindingKind::kOutputs, needless, kLeastShareOfOutputs,
                    {"logits that a variable holds during backward, which does not read them",
                     "`del` the variable (`del logits`) before loss.backward()"}))
    found.push_back(std::move(finding));
  return found;
}

// Outputs of an evaluation that are joined on the card, larger with each batch.

namespace {

bool is_gathered(const Program& program, const Lifetime& lifetime) {
  // A model that joins within its own call keeps a cache.
  return event_of(program, lifetime).phase == Phase::kData &&
         lifetime.category != Category::kInput && lifetime.category != Category::kParameter &&
         is_own(program, lifetime) && op_of(program, lifetime) == "aten::cat";
}

// Whether each is larger than the one before, which goes when it is there.
bool is_a_chain(const Program& program, const std::vector<const Lifetime*>& states) {
  constexpr std::size_t kLeastStates = 3;
  if (states.size() < kLeastStates) return false;
  for (std::size_t i = 1; i < states.size(); ++i) {
    const auto& before = *states[i - 1];
    const bool follows = before.last > states[i]->first &&
                         (i + 1 == states.size() || before.last < states[i + 1]->first);
    const bool is_larger =
        event_of(program, *states[i]).requested_bytes > event_of(program, before).requested_bytes;
    if (!follows || !is_larger) return false;
  }
  return true;
}

bool has_evaluation_between(const std::vector<PhaseSpan>& spans, std::uint64_t first,
                            std::uint64_t last) {
  return std::ranges::any_of(spans, [&](const PhaseSpan& span) {
    return span.phase == Phase::kEvaluation && span.first >= first && span.last <= last;
  });
}

}  // namespace

std::vector<Finding> find_gathered(const Program& program) {
  const auto spans = trace::phase_spans(program.trace);
  std::map<std::int32_t, std::vector<const Lifetime*>> by_stack;
  for (const auto& lifetime : program.lifetimes) {
    if (lifetime.first > program.peak.event) break;
    if (is_gathered(program, lifetime))
      by_stack[event_of(program, lifetime).stack].push_back(&lifetime);
  }
  ByLine found(program);
  for (const auto& [stack, states] : by_stack)
    if (is_a_chain(program, states) &&
        has_evaluation_between(spans, states.front()->first, states.back()->first))
      for (const auto* state : states)
        if (is_at_peak(program, *state)) found.add(*state);
  return of_all_lines(
      program, FindingKind::kGathered, found, kLeastShareOfCopies,
      {"outputs of an evaluation, joined on the card batch by batch",
       "move each batch's to the host (.cpu()), or keep what you need of them (argmax, a loss); "
       "with transformers' Trainer: preprocess_logits_for_metrics, eval_accumulation_steps=1 or "
       "prediction_loss_only=True"});
}

// A step that needs far more than the others, of what the same code makes larger there.

namespace {

struct Highest {
  std::int64_t bytes = 0;
  std::uint64_t event = 0;
};

// In forward and backward of each step.
std::vector<Highest> highest_of_steps(const Program& program) {
  std::vector<Highest> highest(program.steps.count());
  const auto of_event = trace::lifetime_of_event(program.trace, program.lifetimes);
  trace::RunningTotals totals(program.trace, program.lifetimes, of_event, trace::kOwnSpace);
  for (std::uint64_t i = 0; i < program.trace.events.size(); ++i) {
    totals.take(i);
    const auto& event = program.trace.events[i];
    const auto step = program.steps.index_of(event.step);
    if (!step || (event.phase != Phase::kForward && event.phase != Phase::kBackward)) continue;
    if (totals.allocated_bytes() > highest[*step].bytes)
      highest[*step] = {totals.allocated_bytes(), i};
  }
  return highest;
}

struct Alive {
  std::int64_t bytes = 0;
  std::int64_t largest_bytes = 0;  // of those that the event's step made
};

std::map<std::int32_t, Alive> alive_by_stack(const Program& program, std::uint64_t event) {
  std::map<std::int32_t, Alive> alive;
  for (const auto& lifetime : program.lifetimes) {
    if (!is_own(program, lifetime) || lifetime.first > event || lifetime.last <= event) continue;
    const auto& made = event_of(program, lifetime);
    auto& [bytes, largest] = alive[made.stack];
    bytes += made.block_bytes;
    if (made.step == program.trace.events[event].step)
      largest = std::max(largest, made.requested_bytes);
  }
  return alive;
}

// What is more there than at the other event, by line, of code that ran before both and made larger
// tensors there, and not only more of them.
std::vector<std::int64_t> more_by_line(const Program& program, std::uint64_t there,
                                       std::uint64_t other) {
  std::vector<std::int64_t> more(program.lines.size());
  const auto before = alive_by_stack(program, other);
  for (const auto& [stack, alive] : alive_by_stack(program, there))
    if (const auto at = before.find(stack);
        at != before.end() && alive.largest_bytes > at->second.largest_bytes)
      more[program.lines.of(stack)] += alive.bytes - at->second.bytes;
  return more;
}

}  // namespace

std::vector<Finding> find_unusual_step(const Program& program, const std::vector<Finding>& found) {
  constexpr std::size_t kLeastSteps = 4;
  const auto at = program.steps.index_of(program.peak.step);
  const bool is_explained = std::ranges::any_of(found, [](const Finding& finding) {
    return finding.kind == FindingKind::kGrowth || finding.kind == FindingKind::kKept ||
           finding.kind == FindingKind::kInputs || finding.kind == FindingKind::kModels;
  });
  if (!at || *at == 0 || program.steps.count() < kLeastSteps || is_explained) return {};
  if (program.peak.phase != Phase::kForward && program.peak.phase != Phase::kBackward) return {};
  const auto highest = highest_of_steps(program);
  Highest other;
  for (std::size_t i = 0; i < highest.size(); ++i)
    if (i != *at && highest[i].bytes > other.bytes) other = highest[i];
  const auto more = program.peak.allocated_bytes - other.bytes;
  if (more * 4 < other.bytes) return {};
  const auto lines = more_by_line(program, program.peak.event, other.event);
  const auto line = static_cast<std::size_t>(std::ranges::max_element(lines) - lines.begin());
  if (line == 0 || lines[line] * 2 < more) return {};
  Finding finding{FindingKind::kStep, "", more, more, program.lines.at(line)};
  finding.sentence = fmt::format(
      "Step {} needs {}, and no other step more than {}: {} of the difference is made at {}, whose "
      "tensors are larger in that step; cap what they are as large as (the labels or boxes of a "
      "batch), or compute them in chunks.",
      program.peak.step + 1, in_words(program.peak.allocated_bytes), in_words(other.bytes),
      in_words(std::min(lines[line], more)), program.names.in_words(finding.line));
  return {finding};
}

}  // namespace peakbench::analysis
