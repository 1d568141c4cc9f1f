#include "programs/snapshot_phases.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "programs/phases.h"
#include "programs/ranges.h"
#include "programs/snapshot_names.h"
#include "programs/snapshot_work.h"
#include "trace/phases.h"

namespace peakbench::programs {
namespace {

using recording::Mark;
using trace::Phase;
using trace::ScopeKind;

// An annotation, before the event of this number.
struct Placed {
  std::uint64_t event = 0;
  std::string_view name;
  bool ends = false;
  std::int64_t time_us = 0;
};

// Of one microsecond, what begins is before the events, and what ends behind them.
std::vector<Placed> placed(const Snapshot& snapshot, const std::vector<trace::Event>& events) {
  std::vector<Placed> list;
  for (const auto& one : snapshot.annotations) {
    const auto at = one.ends
                        ? std::ranges::upper_bound(events, one.time_us, {}, &trace::Event::time_ns)
                        : std::ranges::lower_bound(events, one.time_us, {}, &trace::Event::time_ns);
    list.push_back({static_cast<std::uint64_t>(at - events.begin()),
                    snapshot.words[static_cast<std::size_t>(one.name)], one.ends, one.time_us});
  }
  std::ranges::stable_sort(list, {},
                           [](const Placed& one) { return std::pair(one.event, one.time_us); });
  return list;
}

// An annotation does not say which one it ends: the last that began, of its name.
class OpenRanges {
 public:
  explicit OpenRanges(std::vector<trace::Range>& found) : ranges_(found) {}

  void follow(const Placed& one) {
    auto& numbers = open_[one.name];
    if (!one.ends) {
      numbers.push_back(++last_);
      ranges_.begin(0, last_, std::string(one.name));
    } else if (!numbers.empty()) {
      ranges_.end(numbers.back());
      numbers.pop_back();
    }
  }
  std::int32_t innermost() const { return ranges_.at(0); }
  std::int32_t labelled(const std::string& label) { return ranges_.index_of(innermost(), label); }

 private:
  Ranges ranges_;
  std::uint64_t last_ = 0;
  std::map<std::string_view, std::vector<std::uint64_t>> open_;
};

void take_ranges(const std::vector<Placed>& annotations, const std::vector<std::string>& words,
                 trace::Trace& trace) {
  OpenRanges open(trace.ranges);
  auto next = annotations.begin();
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    for (; next != annotations.end() && next->event <= i; ++next)
      if (!is_name_of_pytorch(next->name)) open.follow(*next);
    auto& range = trace.events[i].range;
    range = range == trace::kNone ? open.innermost()
                                  : open.labelled(words[static_cast<std::size_t>(range)]);
  }
}

std::vector<TimedMark> updates_in(const std::vector<Placed>& annotations) {
  std::vector<TimedMark> marks;
  std::map<std::string_view, std::int32_t> optimizers;
  for (const auto& one : annotations) {
    if (!one.name.starts_with("Optimizer.step#")) continue;
    const auto number = static_cast<std::int32_t>(optimizers.size());
    const auto optimizer = optimizers.try_emplace(one.name, number).first->second;
    marks.push_back({.event = one.event,
                     .mark = one.ends ? Mark::kUpdateEnds : Mark::kUpdateBegins,
                     .value = optimizer});
  }
  return marks;
}

// The outermost ones of this name.
std::vector<EventSpan> spans_of(const std::vector<Placed>& annotations, std::string_view name,
                                std::uint64_t events) {
  std::vector<EventSpan> spans;
  int open = 0;
  for (const auto& one : annotations) {
    if (!one.name.starts_with(name)) continue;
    if (!one.ends && open++ == 0) spans.push_back({one.event, events, true});
    if (one.ends && open > 0 && --open == 0) spans.back() = {spans.back().first, one.event};
  }
  return spans;
}

struct Steps {
  bool from_beginning = true;       // else the first begins where `ends` begins
  std::vector<std::uint64_t> ends;  // the events behind which a step ends
};

Steps steps_in(const std::vector<Placed>& annotations, const std::vector<TimedMark>& marks) {
  Steps steps{true, {}};
  bool any = false;
  for (const auto& one : annotations) {
    if (!one.name.starts_with("ProfilerStep#")) continue;
    if (!std::exchange(any, true)) steps.from_beginning = one.ends;
    if (!one.ends) steps.ends.push_back(one.event);
  }
  if (!any) steps.ends = step_ends(marks);
  return steps;
}

// Phases where no stack shows a backward.
class AnnotatedPhases {
 public:
  AnnotatedPhases(const std::vector<TimedMark>& updates, const Steps& steps)
      : ends_(steps.ends), step_(steps.from_beginning ? 0 : trace::kNone) {
    say(0);
    for (const auto& update : updates) {
      end_steps_until(update.event);
      const bool ends = update.mark == Mark::kUpdateEnds;
      if (ends && open_ == 0) continue;
      open_ += ends ? -1 : 1;
      scopes.push_back({.event = update.event, .kind = ScopeKind::kUpdate, .ends = ends});
      say(update.event);
    }
    end_steps_until(~std::uint64_t{0});
  }

  std::vector<trace::ScopeMark> scopes;

 private:
  void say(std::uint64_t event) {
    scopes.push_back({.event = event,
                      .phase = open_ > 0 ? Phase::kOptimizerStep : Phase::kBuild,
                      .step = step_});
  }
  void end_steps_until(std::uint64_t event) {
    for (; next_ < ends_.size() && ends_[next_] <= event; ++next_) {
      ++step_;
      say(ends_[next_]);
    }
  }

  const std::vector<std::uint64_t>& ends_;
  std::size_t next_ = 0;
  std::int32_t step_;
  int open_ = 0;
};

// The marks of a traced program (recording/journal.h), as far as stacks and annotations show them.
class InferredMarks {
 public:
  InferredMarks(const SnapshotWork& work, const trace::Trace& trace,
                const std::vector<TimedMark>& updates) {
    for (const auto& update : updates) add(update, kAnnotation);
    for (const auto& span : work.spans) {
      if (span.work == Work::kBackward) {
        add({.event = span.first, .mark = Mark::kBackwardBegins}, kBegin);
        add({.event = span.end, .mark = Mark::kBackwardEnds}, kEnd);
        add_recomputations(span, work, trace);
      } else {
        const auto begins = span.is_forward ? Mark::kForwardBegins : Mark::kEvaluationBegins;
        add({.event = span.first, .mark = begins}, kBegin);
        add({.event = span.end, .mark = Mark::kCallEnds}, kEnd);
      }
    }
    std::ranges::stable_sort(
        marks_, {}, [](const auto& one) { return std::pair(one.first.event, one.second); });
  }

  std::vector<TimedMark> all() const {
    std::vector<TimedMark> marks;
    for (const auto& [mark, order] : marks_) marks.push_back(mark);
    return marks;
  }

 private:
  enum Order { kEnd, kAnnotation, kBegin };  // before one and the same event

  void add(const TimedMark& mark, Order order) { marks_.emplace_back(mark, order); }

  void add_recomputations(const WorkSpan& span, const SnapshotWork& work,
                          const trace::Trace& trace) {
    bool open = false;
    std::uint64_t end = span.first;
    std::int32_t thread = 0;
    const auto close = [&] {
      if (std::exchange(open, false))
        add({.event = end, .mark = Mark::kRecomputationEnds, .thread = thread}, kEnd);
    };
    for (auto i = span.first; i < span.end; ++i) {
      if (work.works[i] == Work::kUnknown) continue;
      const auto& event = trace.events[i];
      if (!work.facts(event).recomputes) {
        close();
        continue;
      }
      thread = event.thread;
      if (!std::exchange(open, true))
        add({.event = i, .mark = Mark::kRecomputationBegins, .thread = thread}, kBegin);
      end = i + 1;
    }
    close();
  }

  std::vector<std::pair<TimedMark, Order>> marks_;
};

// The event behind the last parameter that was made before the first call of a model.
std::uint64_t built(const SnapshotWork& work, const trace::Trace& trace) {
  const auto first = work.spans.empty() ? trace.events.size() : work.spans.front().first;
  std::uint64_t built = 0;
  for (const auto& name : trace.names)
    if (name.role == trace::Role::kParameter && name.event < first)
      built = std::max(built, name.event + 1);
  return built == 0 ? first : built;
}

}  // namespace

PhaseSource take_annotations(const Snapshot& snapshot, trace::Trace& trace) {
  const auto annotations = placed(snapshot, trace.events);
  take_ranges(annotations, snapshot.words, trace);
  const auto updates = updates_in(annotations);
  const auto work = work_of(trace);
  const OptimizerSpans optimizers{
      spans_of(annotations, "Optimizer.step#", trace.events.size()),
      spans_of(annotations, "Optimizer.zero_grad#", trace.events.size())};
  name_snapshot_memory(work, optimizers, trace);
  const auto marks = InferredMarks(work, trace, updates).all();
  const auto steps = steps_in(annotations, work.has_backward() ? marks : updates);
  auto source = PhaseSource::kNone;
  if (work.has_backward()) {
    source = PhaseSource::kStacks;
    trace.scopes = scopes_of(marks, steps.ends, built(work, trace), true);
  } else if (!updates.empty() || !steps.ends.empty()) {
    source = PhaseSource::kAnnotations;
    trace.scopes = AnnotatedPhases(updates, steps).scopes;
  }
  if (source != PhaseSource::kNone) trace::decide_phases(trace);
  return source;
}

}  // namespace peakbench::programs
