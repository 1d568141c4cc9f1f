#include "trace/summary.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace peakbench::trace {
namespace {

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

Moment moment(const Trace& trace, const std::vector<Lifetime>& lifetimes, const Maximum& maximum,
              int space) {
  Moment found;
  found.event = maximum.event;
  found.phase = maximum.phase;
  found.step = maximum.step;
  found.breakdown = breakdown_at(trace, lifetimes, maximum.event, space);
  found.allocated_bytes = total(found.breakdown);
  if (const auto* alloc = weighty_allocation(trace, lifetimes, found, space)) {
    found.in_update = alloc->in_update;
    found.module = word_at(trace.modules, alloc->module);
    found.op = word_at(trace.operators, alloc->op);
  }
  return found;
}

}  // namespace

Anatomy anatomy(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space) {
  Anatomy found;
  if (trace.events.empty()) return found;
  space = space_or_own(trace, space);
  const auto highest = maxima(trace, lifetimes, space);
  for (const auto phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizerStep})
    if (const auto& maximum = highest.phases[static_cast<std::size_t>(phase)])
      found.phases[static_cast<std::size_t>(phase)] = moment(trace, lifetimes, *maximum, space);
  found.peak = moment(trace, lifetimes, highest.peak, space);
  return found;
}

Waterfall waterfall(const Breakdown& from, const Breakdown& to) {
  Waterfall result{total(from), total(to), {}};
  for (std::size_t category = 0; category < kCategoryCount; ++category)
    for (std::size_t phase = 0; phase < kPhaseCount; ++phase)
      if (const auto difference = to[category][phase] - from[category][phase]; difference != 0)
        result.steps.push_back(
            {static_cast<Category>(category), static_cast<Phase>(phase), difference, 0});
  std::stable_sort(result.steps.begin(), result.steps.end(),
                   [](const WaterfallStep& a, const WaterfallStep& b) {
                     const bool saves_a = a.difference_bytes < 0, saves_b = b.difference_bytes < 0;
                     if (saves_a != saves_b) return saves_a;
                     return std::abs(a.difference_bytes) > std::abs(b.difference_bytes);
                   });
  auto level = result.from_bytes;
  for (auto& step : result.steps) step.level_bytes = level += step.difference_bytes;
  return result;
}

namespace {

records::SpaceMemory of_space(const Maxima& maxima) {
  return {maxima.peak.allocated_bytes, maxima.peak.most_requested_bytes, maxima.reserved_bytes};
}

void describe_own(const Trace& trace, const std::vector<Lifetime>& lifetimes, const Maxima& maxima,
                  records::Memory& memory) {
  const auto space = of_space(maxima);
  memory.peak_allocated_bytes = space.peak_allocated_bytes;
  memory.peak_requested_bytes = space.peak_requested_bytes;
  memory.peak_reserved_bytes = space.peak_reserved_bytes;
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    if (const auto& phase = maxima.phases[i])
      memory.phases[to_string(static_cast<Phase>(i))] = {phase->allocated_bytes,
                                                         phase->most_requested_bytes};
  const auto peak = peak_of(trace, lifetimes, maxima);
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    if (peak.by_category[i] != 0)
      memory.at_peak[to_string(static_cast<Category>(i))] = peak.by_category[i];
  memory.peak_phase = to_string(peak.phase);
  memory.peak_step = std::max(peak.step, 0);  // of a build: 0, its phase says so
}

}  // namespace

records::Memory summarise(const Trace& trace, const std::vector<Lifetime>& lifetimes) {
  records::Memory memory;
  const auto maxima = maxima_of_spaces(trace, lifetimes);
  for (std::size_t space = 0; space < trace.spaces.size(); ++space) {
    memory.spaces[trace.spaces[space]] = of_space(maxima[space]);
    if (static_cast<int>(space) != trace.own_space) continue;
    memory.space = trace.spaces[space];
    describe_own(trace, lifetimes, maxima[space], memory);
  }
  for (const auto& event : trace.events)
    memory.steps = std::max<std::int64_t>(memory.steps, event.step + 1);
  return memory;
}

records::Memory summarise(const Trace& trace) { return summarise(trace, lifetimes(trace)); }

}  // namespace peakbench::trace
