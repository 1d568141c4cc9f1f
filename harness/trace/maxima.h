#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::trace {

// The exact bytes alive at one event, by the cells that savings are reported in.

// Bytes by category and by the phase that allocated them. Slack counts in the phase of its block.
using Breakdown = std::array<std::array<std::int64_t, kPhaseCount>, kCategoryCount>;

// Throws std::out_of_range where there is no such event.
Breakdown breakdown_at(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                       std::uint64_t event, int space = kOwnSpace);
std::int64_t total(const Breakdown& breakdown);
std::array<std::int64_t, kCategoryCount> by_category(const Breakdown& breakdown);

// The running account of one space while a trace goes by, event after event. For the module's own
// use.

// For every event, the lifetime that begins or ends there; kNone where none does.
std::vector<std::int32_t> lifetime_of_event(const Trace& trace,
                                            const std::vector<Lifetime>& lifetimes);

class RunningTotals {
 public:
  // Keeps references to the three. `space`: an index, or kOwnSpace.
  RunningTotals(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                const std::vector<std::int32_t>& lifetime_of_event, int space)
      : trace_(trace),
        lifetimes_(lifetimes),
        lifetime_of_event_(lifetime_of_event),
        space_(space_or_own(trace, space)) {}

  // Takes in one event; to be called for every event in order. True where the account changed.
  bool take(std::uint64_t event);

  std::int64_t allocated_bytes() const { return allocated_; }
  std::int64_t requested_bytes() const { return requested_; }  // until released
  std::int64_t reserved_bytes() const { return reserved_; }
  bool has_segments() const { return has_segments_; }
  // Sums to allocated_bytes().
  const std::array<std::int64_t, kCategoryCount>& by_category() const { return by_category_; }

 private:
  void take_block(std::uint64_t event, const Lifetime& lifetime);
  void take_segment(const Event& event);

  const Trace& trace_;
  const std::vector<Lifetime>& lifetimes_;
  const std::vector<std::int32_t>& lifetime_of_event_;
  int space_;
  std::int64_t allocated_ = 0, requested_ = 0, reserved_ = 0;
  bool has_segments_ = false;
  std::array<std::int64_t, kCategoryCount> by_category_{};
};

// The one walk over a trace that every figure of a peak comes from.
//
// What counts: the events before the first step, which are the build, and the events in steps. The
// level that a phase begins with counts for it, as after a reset of the allocator's peak. Where a
// trace counts some steps (Trace::counted_steps), these alone.

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
  // Over the steps; over the build if there are no steps; over both if the trace counts its build.
  Maximum peak;
  std::array<std::optional<Maximum>, kPhaseCount> phases;  // over all steps; those that occur
  // Over the steps; at the end if there are none. Absent if the space has no segments.
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
