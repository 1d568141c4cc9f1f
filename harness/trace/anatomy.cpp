#include "trace/anatomy.h"

#include <algorithm>

#include "trace/ledger.h"

namespace peakbench::trace {
namespace {

constexpr std::uint64_t kNoEvent = ~std::uint64_t{0};

// The first event of any step, kNoEvent where there is none.
std::uint64_t first_step_event(const Trace& trace) {
  const auto at = std::find_if(trace.events.begin(), trace.events.end(),
                               [](const Event& event) { return event.step != kNone; });
  return at == trace.events.end() ? kNoEvent
                                  : static_cast<std::uint64_t>(at - trace.events.begin());
}

void raise(std::int64_t& maximum, std::int64_t value) { maximum = std::max(maximum, value); }

// The maxima of one space, gathered while a ledger runs.
struct Maxima {
  result::SpaceMemory space;
  std::array<result::PhaseMemory, kPhaseCount> phases;
  std::array<bool, kPhaseCount> seen{};
  std::int64_t reserved = 0;

  void look(const Ledger& ledger, const Event& event, bool building) {
    const auto phase = static_cast<std::size_t>(building ? Phase::kBuild : event.phase);
    seen[phase] = true;
    raise(phases[phase].peak_allocated_bytes, ledger.allocated_bytes());
    raise(phases[phase].peak_requested_bytes, ledger.requested_bytes());
    if (building) return;
    raise(space.peak_allocated_bytes, ledger.allocated_bytes());
    raise(space.peak_requested_bytes, ledger.requested_bytes());
    raise(reserved, ledger.reserved_bytes());
  }
};

Maxima maxima(const Trace& trace, const std::vector<Lifetime>& lifetimes,
              const std::vector<std::int32_t>& owners, int space) {
  Maxima found;
  Ledger ledger(trace, lifetimes, owners, space);
  const auto steps_begin = first_step_event(trace);
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    const auto& event = trace.events[i];
    const bool building = i < steps_begin;
    const bool counts = building || event.step != kNone;
    if (counts) found.look(ledger, event, building);  // the level it begins with
    ledger.take(i);
    if (counts) found.look(ledger, event, building);
  }
  if (steps_begin == kNoEvent) {
    const auto& build = found.phases[static_cast<std::size_t>(Phase::kBuild)];
    found.space.peak_allocated_bytes = build.peak_allocated_bytes;
    found.space.peak_requested_bytes = build.peak_requested_bytes;
    found.reserved = ledger.reserved_bytes();
  }
  if (ledger.has_segments()) found.space.peak_reserved_bytes = found.reserved;
  return found;
}

}  // namespace

Peak find_peak(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space) {
  Peak peak;
  const auto owners = lifetime_of_event(trace, lifetimes);
  Ledger ledger(trace, lifetimes, owners, space);
  const auto keep = [&](std::uint64_t event) {
    peak.event = event;
    peak.allocated_bytes = ledger.allocated_bytes();
    peak.by_category = ledger.by_category();
    peak.requested_bytes = peak.allocated_bytes -
                           peak.by_category[static_cast<std::size_t>(Category::kAllocatorSlack)];
  };
  const auto steps_begin = first_step_event(trace);
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    if (i == steps_begin && i > 0) keep(i - 1);
    ledger.take(i);
    const bool counts = steps_begin == kNoEvent || trace.events[i].step != kNone;
    if (counts && ledger.allocated_bytes() > peak.allocated_bytes) keep(i);
  }
  return peak;
}

PeakPlace place_of(const Trace& trace, const Peak& peak) {
  if (trace.events.empty()) return {};
  const auto steps_begin = first_step_event(trace);
  const auto event = steps_begin == kNoEvent ? peak.event : std::max(peak.event, steps_begin);
  return {trace.events[event].phase, trace.events[event].step};
}

result::Memory summarise(const Trace& trace, const std::vector<Lifetime>& lifetimes) {
  result::Memory memory;
  const auto owners = lifetime_of_event(trace, lifetimes);
  for (std::size_t space = 0; space < trace.spaces.size(); ++space) {
    const auto found = maxima(trace, lifetimes, owners, static_cast<int>(space));
    memory.spaces[trace.spaces[space]] = found.space;
    if (static_cast<int>(space) != trace.own_space) continue;
    memory.space = trace.spaces[space];
    memory.peak_allocated_bytes = found.space.peak_allocated_bytes;
    memory.peak_requested_bytes = found.space.peak_requested_bytes;
    memory.peak_reserved_bytes = found.space.peak_reserved_bytes;
    for (std::size_t phase = 0; phase < kPhaseCount; ++phase)
      if (found.seen[phase])
        memory.phases[to_string(static_cast<Phase>(phase))] = found.phases[phase];
  }
  const auto peak = find_peak(trace, lifetimes);
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    if (peak.by_category[i] != 0)
      memory.at_peak[to_string(static_cast<Category>(i))] = peak.by_category[i];
  const auto place = place_of(trace, peak);
  memory.peak_phase = to_string(place.phase);
  memory.peak_step = place.step;
  for (const auto& event : trace.events)
    memory.steps = std::max<std::int64_t>(memory.steps, event.step + 1);
  return memory;
}

result::Memory summarise(const Trace& trace) { return summarise(trace, lifetimes(trace)); }

}  // namespace peakbench::trace
