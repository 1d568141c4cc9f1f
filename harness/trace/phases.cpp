#include "trace/phases.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace peakbench::trace {
namespace {

// What a thread is in.
struct OpenScopes {
  int updates = 0, backward_nodes = 0;
  std::vector<std::int32_t> recomputations;  // their numbers, the innermost last
};

// The rules of phases.h, while the marks go by.
class PhaseRules {
 public:
  void take(const ScopeMark& mark) {
    OpenScopes& open = threads_[mark.thread];
    switch (mark.kind) {
      case ScopeKind::kPhase:
        said_ = mark.phase;
        now_ = {mark.phase, mark.step};
        return;
      case ScopeKind::kModule:
        if (may_begin_a_pass(open) && open.backward_nodes == 0) now_.phase = Phase::kForward;
        return;
      case ScopeKind::kBackwardNode:
        return mark.ends ? end_node(open) : begin_node(open);
      case ScopeKind::kUpdate:
        return mark.ends ? end_update(open) : begin_update(open);
      case ScopeKind::kRecomputation:
        return mark.ends ? end_recomputation(open) : begin_recomputation(open);
      case ScopeKind::kCapture:
      case ScopeKind::kLargerCopy:
      case ScopeKind::kFrozenCopy:
        return;  // changes no phase
    }
  }

  void decide(Event& event) const {
    event.phase = now_.phase;
    event.step = now_.step;
    const auto found = threads_.find(event.thread);
    const bool known = found != threads_.end();
    event.in_update = known && found->second.updates > 0;
    event.in_recompute = known && !found->second.recomputations.empty();
    event.recompute = event.in_recompute ? found->second.recomputations.back() : kNone;
  }

  const PhaseOfStep& now() const { return now_; }

 private:
  bool may_begin_a_pass(const OpenScopes& open) const {
    return said_ == Phase::kOptimizerStep && updates_ == 0 && open.recomputations.empty();
  }

  void begin_node(OpenScopes& open) {
    if (may_begin_a_pass(open)) now_.phase = Phase::kBackward;
    ++open.backward_nodes;
  }
  static void end_node(OpenScopes& open) {
    if (open.backward_nodes > 0) --open.backward_nodes;
  }

  void begin_update(OpenScopes& open) {
    if (said_ == Phase::kOptimizerStep && open.backward_nodes == 0)
      now_.phase = Phase::kOptimizerStep;
    ++open.updates;
    ++updates_;
  }
  void end_update(OpenScopes& open) {
    if (open.updates == 0) return;
    --open.updates;
    --updates_;
  }

  void begin_recomputation(OpenScopes& open) { open.recomputations.push_back(recomputations_++); }
  static void end_recomputation(OpenScopes& open) {
    if (!open.recomputations.empty()) open.recomputations.pop_back();
  }

  std::unordered_map<std::int32_t, OpenScopes> threads_;
  Phase said_ = Phase::kBuild;  // now_ may be what was seen since
  PhaseOfStep now_;
  int updates_ = 0;  // on all threads
  std::int32_t recomputations_ = 0;
};

}  // namespace

void decide_phases(Trace& trace) {
  PhaseRules rules;
  auto mark = trace.scopes.begin();
  for (std::uint64_t number = 0; number < trace.events.size(); ++number) {
    for (; mark != trace.scopes.end() && mark->event <= number; ++mark) rules.take(*mark);
    rules.decide(trace.events[number]);
  }
}

std::vector<PhaseOfPoint> phases_at(const std::vector<ScopeMark>& scopes,
                                    const std::vector<ScopePoint>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t at) { return points[at].marks; });
  std::vector<PhaseOfPoint> found(points.size());
  PhaseRules rules;
  std::size_t marks = 0;
  for (const std::size_t at : order) {
    for (; marks < scopes.size() && marks < points[at].marks; ++marks) rules.take(scopes[marks]);
    Event event;
    event.thread = points[at].thread;
    rules.decide(event);
    found[at] = {event.phase, event.step, event.in_recompute};
  }
  return found;
}

PhaseOfStep phase_at(const std::vector<ScopeMark>& scopes, std::uint64_t event) {
  PhaseRules rules;
  for (const ScopeMark& mark : scopes) {
    if (mark.event > event) break;
    rules.take(mark);
  }
  return rules.now();
}

}  // namespace peakbench::trace
