// The one walk over a trace that every figure of a peak comes from.
//
// What counts: the events before the first step, which are the build, and the events in steps. The
// level that a phase begins with counts for it, as after a reset of the allocator's peak. Where a
// trace counts some steps (Trace::counted_steps), these alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::trace {

// Where allocated bytes are highest for the first time.
struct Maximum {
  std::uint64_t event = 0;  // the last one before the phase, where the level it begins with is it
  Phase phase = Phase::kBuild;  // that it counts for
  std::int32_t step = kNone;
  std::int64_t allocated_bytes = 0;
  // Their own maximum, which may be at another event; counted until a block is released, as the
  // CUDA allocator counts them.
  std::int64_t most_requested_bytes = 0;
};

// Of one space.
struct Maxima {
  // Over the steps; of the build where there are none; of all where the trace counts its build.
  Maximum peak;
  std::array<std::optional<Maximum>, kPhaseCount> phases;  // over all steps; those that occur
  // Over the steps; at the end where there are none. Absent where the space has no segments.
  std::optional<std::int64_t> reserved_bytes;
};

Maxima maxima(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space = kOwnSpace);
// Of every space, in the order of Trace::spaces.
std::vector<Maxima> maxima_of_spaces(const Trace& trace, const std::vector<Lifetime>& lifetimes);

// The peak and what is alive there. Guarantee: by_category sums to allocated_bytes exactly.
struct Peak {
  std::uint64_t event = 0;
  Phase phase = Phase::kBuild;
  std::int32_t step = kNone;
  std::int64_t allocated_bytes = 0, requested_bytes = 0;  // of what is alive there
  std::array<std::int64_t, kCategoryCount> by_category{};
};
Peak peak_of(const Trace& trace, const std::vector<Lifetime>& lifetimes, const Maxima& maxima,
             int space = kOwnSpace);
Peak find_peak(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space = kOwnSpace);

}  // namespace peakbench::trace
