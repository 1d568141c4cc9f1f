#include "programs/phases.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

namespace peakbench::programs {

using recording::Mark;
using trace::Phase;
using trace::ScopeKind;
using trace::ScopeMark;

std::vector<std::uint64_t> step_ends(const std::vector<TimedMark>& marks) {
  std::vector<std::uint64_t> ends, backwards;
  std::set<std::int32_t> had_a_turn;
  std::optional<std::uint64_t> round_end;  // of the last update, or of the backward around it
  int open_backwards = 0;
  bool updated_inside = false, goes_on = false;
  for (const auto& mark : marks) {
    switch (mark.mark) {
      case Mark::kUpdateBegins:
        if (!had_a_turn.insert(mark.value).second) {
          if (round_end) ends.push_back(*round_end);
          had_a_turn = {mark.value};
        }
        break;
      case Mark::kUpdateEnds:
        round_end = mark.event;
        updated_inside = open_backwards > 0;
        goes_on = false;
        break;
      case Mark::kBackwardBegins:
        ++open_backwards;
        break;
      case Mark::kBackwardEnds:
        open_backwards = std::max(open_backwards - 1, 0);
        if (open_backwards > 0) break;
        if (updated_inside) round_end = mark.event;
        updated_inside = false;
        backwards.push_back(mark.event);
        break;
      case Mark::kForwardBegins:
        goes_on = goes_on || open_backwards == 0;
        break;
      default:
        break;
    }
  }
  if (goes_on && round_end) ends.push_back(*round_end);  // a step that had no update
  if (had_a_turn.empty() && !backwards.empty()) {
    backwards.pop_back();  // what follows the last belongs to it
    return backwards;
  }
  return ends;
}

namespace {

class Phases {
 public:
  Phases(const std::vector<TimedMark>& marks, const std::vector<std::uint64_t>& ends,
         std::uint64_t built, bool ended_well)
      : marks_(marks), ends_(ends), built_(built) {
    if (ended_well) last_backward_ = marks.size();
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (marks[i].mark == Mark::kDifferentiates) differentiated_.insert(marks[i].call);
      if (marks[i].mark == Mark::kCallEnds && marks[i].value == kWithGraph)
        with_graph_.insert(marks[i].call);
      if (marks[i].mark == Mark::kBackwardEnds) last_backward_ = std::max(last_backward_, i);
    }
  }

  std::vector<ScopeMark> take() {
    say(Phase::kBuild, 0, trace::kNone, 0);
    for (at_ = 0; at_ < marks_.size(); ++at_) {
      follow_steps(marks_[at_].event);
      look(marks_[at_]);
    }
    follow_steps(~std::uint64_t{0});
    return std::move(scopes_);
  }

 private:
  void say(Phase phase, std::uint64_t event, std::int32_t step, std::int32_t thread) {
    phase_ = phase;
    if (!scopes_.empty()) event = std::max(event, scopes_.back().event);  // never back
    scopes_.push_back({.event = event, .phase = phase, .step = step, .thread = thread});
  }
  void begin(Phase phase, const TimedMark& mark) {
    leave_build(mark.event);
    if (phase != phase_) say(phase, mark.event, step_, mark.thread);
  }

  void leave_build(std::uint64_t event) {
    if (step_ != trace::kNone) return;
    step_ = 0;
    say(Phase::kData, std::min(built_, event), step_, 0);
  }

  void follow_steps(std::uint64_t event) {
    while (next_end_ < ends_.size() && ends_[next_end_] <= event) {
      // Not before what ends there has been looked at.
      if (at_ < marks_.size() && ends_[next_end_] == event && is_end(marks_[at_])) return;
      ++step_;
      say(phase_, ends_[next_end_++], step_, 0);
    }
  }
  static bool is_end(const TimedMark& mark) {
    return mark.mark == Mark::kUpdateEnds || mark.mark == Mark::kBackwardEnds ||
           mark.mark == Mark::kRecomputationEnds || mark.mark == Mark::kCallEnds;
  }

  void look(const TimedMark& mark) {
    switch (mark.mark) {
      case Mark::kForwardBegins:
        if (is_free()) begin_forward(mark);
        return;
      case Mark::kEvaluationBegins:
        if (is_free()) begin_evaluation(mark);
        return;
      case Mark::kGenerationBegins:
        if (is_free()) begin(Phase::kGeneration, mark);
        return;
      case Mark::kCallEnds:
        if (unused_call_ != 0 && mark.call == unused_call_) end_unused_call(mark);
        if (is_free() && (phase_ == Phase::kEvaluation || phase_ == Phase::kGeneration))
          begin(next_of_note() == Mark::kBackwardBegins ? Phase::kForward : Phase::kData, mark);
        return;
      case Mark::kBackwardBegins:
        if (backwards_++ == 0) begin(Phase::kBackward, mark);
        return;
      case Mark::kBackwardEnds:
        backwards_ = std::max(backwards_ - 1, 0);
        if (backwards_ == 0) begin(updates_ > 0 ? Phase::kOptimizerStep : after_backward(), mark);
        return;
      case Mark::kUpdateBegins:
        if (backwards_ == 0) begin(Phase::kOptimizerStep, mark);
        ++updates_;
        return scope(ScopeKind::kUpdate, false, mark);
      case Mark::kUpdateEnds:
        if (updates_ == 0) return;
        scope(ScopeKind::kUpdate, true, mark);
        if (--updates_ == 0 && backwards_ == 0)
          begin(an_update_is_next() ? Phase::kOptimizerStep : Phase::kData, mark);
        return;
      case Mark::kSaveBegins:
        if (is_free() && step_ != trace::kNone) begin(Phase::kCheckpoint, mark);
        return;
      case Mark::kSaveEnds:
        if (phase_ == Phase::kCheckpoint) begin(Phase::kData, mark);
        return;
      case Mark::kRecomputationBegins:
        return scope(ScopeKind::kRecomputation, false, mark);
      case Mark::kRecomputationEnds:
        return scope(ScopeKind::kRecomputation, true, mark);
      case Mark::kCaptureBegins:
        return scope(ScopeKind::kCapture, false, mark);
      case Mark::kDifferentiates:
      case Mark::kCopyBegins:
      case Mark::kCopyEnds:
      case Mark::kJoins:
        return;  // no phase begins with them
      case Mark::kCaptureEnds:
        return scope(ScopeKind::kCapture, true, mark);
    }
  }

  bool is_free() const { return backwards_ == 0; }

  // One in training whose graph no backward runs, in a program whose backwards run those of others.
  void begin_forward(const TimedMark& mark) {
    begin(Phase::kForward, mark);
    const bool is_unused = mark.call != 0 && with_graph_.contains(mark.call) &&
                           !differentiated_.contains(mark.call) && !differentiated_.empty() &&
                           at_ < last_backward_;
    if (!is_unused) return;
    scope(ScopeKind::kModule, false, mark);
    unused_call_ = mark.call;
  }
  void end_unused_call(const TimedMark& mark) {
    unused_call_ = 0;
    say(phase_, mark.event, step_, mark.thread);
  }

  void begin_evaluation(const TimedMark& mark) {
    if (differentiated_.contains(mark.call)) return begin(Phase::kForward, mark);
    begin(Phase::kEvaluation, mark);
    if (with_graph_.contains(mark.call) && at_ < last_backward_)
      scope(ScopeKind::kModule, false, mark);
  }

  // The end of what did not begin is left out: of a capture that failed to begin, say.
  void scope(ScopeKind kind, bool ends, const TimedMark& mark) {
    auto& open = open_[{kind, mark.thread}];
    if (ends && open == 0) return;
    open += ends ? -1 : 1;
    scopes_.push_back({.event = mark.event, .kind = kind, .ends = ends, .thread = mark.thread});
  }

  // What begins next, of what decides what a gap before it was for.
  std::optional<Mark> next_of_note() const {
    for (auto i = at_ + 1; i < marks_.size(); ++i) {
      const auto mark = marks_[i].mark;
      if (mark == Mark::kUpdateBegins || mark == Mark::kBackwardBegins ||
          mark == Mark::kForwardBegins || mark == Mark::kEvaluationBegins ||
          mark == Mark::kGenerationBegins || mark == Mark::kSaveBegins)
        return mark;
    }
    return std::nullopt;
  }
  // One that calls the model itself (a closure, as Lightning's trainer gives one) begins as a
  // forward does: behind its data.
  bool an_update_is_next() const {
    if (next_of_note() != Mark::kUpdateBegins) return false;
    auto update = at_ + 1;
    while (marks_[update].mark != Mark::kUpdateBegins) ++update;
    for (auto i = update + 1; i < marks_.size(); ++i) {
      if (marks_[i].mark == Mark::kForwardBegins || marks_[i].mark == Mark::kEvaluationBegins)
        return false;
      if (marks_[i].mark == Mark::kUpdateEnds) return true;
    }
    return true;
  }
  Phase after_backward() const {
    if (an_update_is_next()) return Phase::kOptimizerStep;
    const auto next = next_of_note();
    return next == Mark::kBackwardBegins ? Phase::kBackward : Phase::kData;
  }

  const std::vector<TimedMark>& marks_;
  const std::vector<std::uint64_t>& ends_;
  const std::uint64_t built_;
  std::set<std::int32_t> differentiated_, with_graph_;  // calls
  std::size_t last_backward_ = 0;                       // the mark at which the last one ended
  std::vector<ScopeMark> scopes_;
  std::size_t at_ = 0, next_end_ = 0;
  std::int32_t step_ = trace::kNone;
  Phase phase_ = Phase::kBuild;
  int backwards_ = 0, updates_ = 0;
  std::int32_t unused_call_ = 0;                            // that it is in
  std::map<std::pair<ScopeKind, std::int32_t>, int> open_;  // scopes, by thread
};

}  // namespace

std::vector<ScopeMark> scopes_of(const std::vector<TimedMark>& marks,
                                 const std::vector<std::uint64_t>& step_ends, std::uint64_t built,
                                 bool ended_well) {
  return Phases(marks, step_ends, built, ended_well).take();
}

void add_copies(trace::Trace& trace, const std::vector<CopyMark>& marks) {
  using trace::ScopeKind;
  std::unordered_set<std::uint64_t> parameters;
  for (const auto& name : trace.names)
    if (name.role == trace::Role::kParameter) parameters.insert(name.event);
  std::map<std::int32_t, std::vector<std::optional<ScopeKind>>> open;  // by thread, innermost last
  std::vector<trace::ScopeMark> scopes;
  for (const auto& mark : marks) {
    auto& copies = open[mark.thread];
    std::optional<ScopeKind> kind;
    if (mark.ends) {
      if (copies.empty()) continue;
      kind = copies.back();
      copies.pop_back();
    } else {
      if (mark.copy == recording::Copy::kLarger)
        kind = ScopeKind::kLargerCopy;
      else if (mark.source && parameters.contains(*mark.source))
        kind = ScopeKind::kFrozenCopy;
      copies.push_back(kind);
    }
    if (kind)
      scopes.push_back(
          {.event = mark.event, .kind = *kind, .ends = mark.ends, .thread = mark.thread});
  }
  const auto middle = trace.scopes.insert(trace.scopes.end(), scopes.begin(), scopes.end());
  std::ranges::inplace_merge(trace.scopes, middle, {}, &trace::ScopeMark::event);
}

}  // namespace peakbench::programs
