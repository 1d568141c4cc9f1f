#include "trace/anatomy.h"

#include <algorithm>
#include <iterator>

#include "trace/maxima.h"

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
    found.module = word(trace.modules, alloc->module);
    found.op = word(trace.operators, alloc->op);
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

}  // namespace peakbench::trace
