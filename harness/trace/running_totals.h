// The running account of one space while a trace goes by, event after event. For the room's own
// use.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::trace {

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

}  // namespace peakbench::trace
