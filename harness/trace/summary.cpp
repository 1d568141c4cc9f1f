#include "trace/summary.h"

#include <algorithm>

#include "trace/maxima.h"

namespace peakbench::trace {
namespace {

result::SpaceMemory of_space(const Maxima& maxima) {
  return {maxima.peak.allocated_bytes, maxima.peak.most_requested_bytes, maxima.reserved_bytes};
}

void describe_own(const Trace& trace, const std::vector<Lifetime>& lifetimes, const Maxima& maxima,
                  result::Memory& memory) {
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

result::Memory summarise(const Trace& trace, const std::vector<Lifetime>& lifetimes) {
  result::Memory memory;
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

result::Memory summarise(const Trace& trace) { return summarise(trace, lifetimes(trace)); }

}  // namespace peakbench::trace
