#include "trace/running_totals.h"

#include "trace/timeline.h"

namespace peakbench::trace {

std::vector<std::int32_t> lifetime_of_event(const Trace& trace,
                                            const std::vector<Lifetime>& lifetimes) {
  std::vector<std::int32_t> owners(trace.events.size() + 1, kNone);  // +1: alive at the end
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const auto& lifetime = lifetimes[i];
    owners.at(lifetime.first) = owners.at(lifetime.last) = owners.at(lifetime.released) =
        static_cast<std::int32_t>(i);
  }
  owners.pop_back();
  return owners;
}

bool RunningTotals::take(std::uint64_t event) {
  const auto& happened = trace_.events[event];
  if (happened.space != space_) return false;
  const auto owner = lifetime_of_event_[event];
  if (owner != kNone) {
    take_block(event, lifetimes_[static_cast<std::size_t>(owner)]);
  } else {
    take_segment(happened);
  }
  return true;
}

void RunningTotals::take_block(std::uint64_t event, const Lifetime& lifetime) {
  const auto& alloc = trace_.events[lifetime.first];
  const auto count = [&](std::int64_t sign) {
    allocated_ += sign * alloc.block_bytes;
    by_category_[static_cast<std::size_t>(lifetime.category)] += sign * alloc.requested_bytes;
    by_category_[static_cast<std::size_t>(Category::kAllocatorSlack)] +=
        sign * (alloc.block_bytes - alloc.requested_bytes);
  };
  if (event == lifetime.first) {
    count(+1);
    requested_ += alloc.requested_bytes;
  }
  if (event == lifetime.last) count(-1);
  if (event == lifetime.released) requested_ -= alloc.requested_bytes;
}

void RunningTotals::take_segment(const Event& event) {
  const auto change = reserved_change(event);
  reserved_ += change;
  has_segments_ = has_segments_ || change != 0;
}

}  // namespace peakbench::trace
