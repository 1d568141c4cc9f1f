#include "programs/kept_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/numbers.h"
#include "trace/lifetimes.h"

namespace peakbench::programs {
namespace {

using trace::EventKind;

[[noreturn]] void refuse(const std::string& text, const char* why) {
  throw ConfigError(fmt::format(
      "--steps {}: {}; expected steps, counted from 1: 3, 2..4, ..4 or 2..", text, why));
}

std::int64_t number_of(std::string_view digits, const std::string& text) {
  const auto number = integer_from_text(digits);
  if (!number || digits.front() == '-') refuse(text, "no number of a step");
  if (*number == 0) refuse(text, "the first step is 1");
  return *number;
}

class Cut {
 public:
  Cut(trace::Trace& trace, const StepRange& range) : trace_(trace), range_(range) {
    if (!trace.events.empty() && trace.events.back().kind == EventKind::kOutOfMemory)
      failed_ = trace.events.back().step;
  }

  bool make() {
    const bool any = std::ranges::any_of(
        trace_.events, [&](const trace::Event& event) { return range_.holds(event.step); });
    if (!any) return false;
    choose();
    number();
    take_names();
    take_scopes();
    take_events();
    count_steps();
    return true;
  }

 private:
  bool is_in_steps(const trace::Event& event) const {
    return range_.holds(event.step) || (event.step != trace::kNone && event.step == failed_);
  }

  void choose() {
    const auto count = trace_.events.size();
    stays_.resize(count);
    std::vector<std::uint64_t> before(count + 1);  // events of the steps before each
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto& event = trace_.events[i];
      const bool in_steps = is_in_steps(event);
      before[i + 1] = before[i] + (in_steps ? 1 : 0);
      switch (event.kind) {
        case EventKind::kAlloc:
        case EventKind::kFree:
        case EventKind::kFreeRequested:
          break;  // by their lifetimes
        case EventKind::kOutOfMemory:
          stays_[i] = in_steps;
          break;
        default:
          stays_[i] = true;
      }
    }
    for (const auto& lifetime : trace::lifetimes(trace_)) {
      const auto end = std::min<std::uint64_t>(lifetime.released + 1, count);
      if (before[end] == before[lifetime.first]) continue;
      for (const auto event : {lifetime.first, lifetime.last, lifetime.released})
        if (event < count) stays_[event] = true;
    }
  }

  void number() {
    numbers_.resize(stays_.size() + 1);
    for (std::size_t i = 0; i < stays_.size(); ++i)
      numbers_[i + 1] = numbers_[i] + (stays_[i] ? 1 : 0);
  }

  void take_names() {
    std::erase_if(trace_.names, [&](const trace::Name& name) { return !stays_[name.event]; });
    for (auto& name : trace_.names) name.event = numbers_[name.event];
  }

  // Of scopes between two events that stay, those that began there and lasted.
  void take_scopes() {
    std::vector<trace::ScopeMark> scopes;
    for (auto mark : trace_.scopes) {
      mark.event = numbers_[mark.event];
      const auto is_over = [&](const trace::ScopeMark& earlier) {
        return earlier.kind == mark.kind && !earlier.ends &&
               (earlier.kind == trace::ScopeKind::kPhase || earlier.thread == mark.thread);
      };
      if (mark.ends || mark.kind == trace::ScopeKind::kPhase) {
        auto last = scopes.rbegin();
        while (last != scopes.rend() && last->event == mark.event && !is_over(*last)) ++last;
        if (last != scopes.rend() && last->event == mark.event) {
          scopes.erase(std::prev(last.base()));
          if (mark.ends) continue;
        }
      }
      scopes.push_back(mark);
    }
    trace_.scopes = std::move(scopes);
  }

  void take_events() {
    std::vector<trace::Event> events;
    events.reserve(numbers_.back());
    for (std::size_t i = 0; i < stays_.size(); ++i)
      if (stays_[i]) events.push_back(trace_.events[i]);
    trace_.events = std::move(events);
  }

  void count_steps() {
    trace::StepSpan span{trace::kNone, trace::kNone};
    for (const auto& event : trace_.events) {
      if (!range_.holds(event.step)) continue;
      if (span.first == trace::kNone) span.first = event.step;
      span.last = event.step;
    }
    trace_.counted_steps = {span};
    if (failed_ > span.last) trace_.counted_steps.push_back({failed_, failed_});
  }

  trace::Trace& trace_;
  const StepRange& range_;
  std::int32_t failed_ = trace::kNone;  // the step that memory ran out in
  std::vector<bool> stays_;             // by event
  std::vector<std::uint64_t> numbers_;  // of each event among those that stay
};

}  // namespace

StepRange step_range(const std::string& text) {
  StepRange range;
  const auto dots = text.find("..");
  if (text.empty() || text == "..") refuse(text, "no step is named");
  if (dots == std::string::npos) {
    range.first = range.last = number_of(text, text);
    return range;
  }
  const std::string_view all = text;
  if (dots > 0) range.first = number_of(all.substr(0, dots), text);
  if (dots + 2 < all.size()) range.last = number_of(all.substr(dots + 2), text);
  if (range.first > range.last) refuse(text, "it ends before it begins");
  return range;
}

std::string part_name(const StepRange& range) {
  if (range.first == range.last) return fmt::format("step-{}", range.first);
  if (range.last == StepRange{}.last) return fmt::format("steps-from-{}", range.first);
  return fmt::format("steps-{}-to-{}", range.first, range.last);
}

bool keep_steps(trace::Trace& trace, const StepRange& range) { return Cut(trace, range).make(); }

}  // namespace peakbench::programs
