// The moments that an explanation is made of.
#include <algorithm>
#include <iterator>

#include "trace/explain.h"
#include "trace/ledger.h"

namespace peakbench::trace {
namespace {

std::string word(const std::vector<std::string>& words, std::int32_t index) {
  return index == kNone ? std::string() : words[static_cast<std::size_t>(index)];
}

// Scalars are allocated all the time: the event that reaches the maximum is often one of them.
constexpr std::int64_t kWeight = 1000;

const Event* weighty_allocation(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                                const Moment& moment, int space) {
  const auto after = std::upper_bound(
      lifetimes.begin(), lifetimes.end(), moment.event,
      [](std::uint64_t event, const Lifetime& lifetime) { return event < lifetime.first; });
  for (auto at = std::make_reverse_iterator(after); at != lifetimes.rend(); ++at) {
    const auto& alloc = trace.events[at->first];
    if (alloc.phase != moment.phase || alloc.step != moment.step) return nullptr;
    if (alloc.space == space && at->last > moment.event &&
        alloc.block_bytes >= moment.allocated_bytes / kWeight)
      return &alloc;
  }
  return nullptr;
}

Moment moment(const Trace& trace, const std::vector<Lifetime>& lifetimes, std::uint64_t event,
              PeakPlace place, int space) {
  Moment found;
  found.event = event;
  found.phase = place.phase;
  found.step = place.step;
  found.parts = parts_at(trace, lifetimes, event, space);
  found.allocated_bytes = total(found.parts);
  if (const auto* alloc = weighty_allocation(trace, lifetimes, found, space)) {
    found.in_update = alloc->in_update;
    found.module = word(trace.modules, alloc->module);
    found.op = word(trace.operators, alloc->op);
  }
  return found;
}

// The highest event of each phase; the level that a phase begins with is its predecessor's event.
struct Highest {
  std::int64_t bytes = -1;
  std::uint64_t event = 0;
  std::int32_t step = kNone;

  void look(std::int64_t level, std::uint64_t at, std::int32_t of_step) {
    if (level > bytes) *this = {level, at, of_step};
  }
};

}  // namespace

Anatomy anatomy(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space) {
  Anatomy found;
  if (trace.events.empty()) return found;
  space = space_or_own(trace, space);
  const auto owners = lifetime_of_event(trace, lifetimes);
  Ledger ledger(trace, lifetimes, owners, space);
  std::array<Highest, kPhaseCount> highest;
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    const auto& event = trace.events[i];
    auto& phase = highest[static_cast<std::size_t>(event.phase)];
    const bool counts = event.step != kNone;
    if (counts && i > 0) phase.look(ledger.allocated_bytes(), i - 1, event.step);
    ledger.take(i);
    if (counts) phase.look(ledger.allocated_bytes(), i, event.step);
  }
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    if (highest[i].bytes >= 0)
      found.phases[i] = moment(trace, lifetimes, highest[i].event,
                               {static_cast<Phase>(i), highest[i].step}, space);
  const auto peak = find_peak(trace, lifetimes, space);
  found.peak = moment(trace, lifetimes, peak.event, place_of(trace, peak), space);
  return found;
}

}  // namespace peakbench::trace
