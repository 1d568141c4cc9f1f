#include "trace/maxima.h"

#include <algorithm>

#include "trace/breakdown.h"
#include "trace/running_totals.h"

namespace peakbench::trace {
namespace {

// The maximum so far; nothing yet where `seen` is false.
struct Highest {
  Maximum found;
  bool seen = false;

  void look(const RunningTotals& totals, const Maximum& here) {
    const auto requested = std::max(found.most_requested_bytes, totals.requested_bytes());
    if (!seen || here.allocated_bytes > found.allocated_bytes) found = here;
    found.most_requested_bytes = requested;
    seen = true;
  }
};

// Gathers what one space reaches while the totals run.
class Walk {
 public:
  Walk(const Trace& trace, const RunningTotals& totals) : trace_(trace), totals_(totals) {}

  // Before the totals take the event, and after it.
  void look(std::uint64_t number, std::uint64_t level_of) {
    const auto& event = trace_.events[number];
    building_ = building_ && event.step == kNone;
    if (!building_ && event.step == kNone) return;
    if (!is_counted(trace_, event.step)) return;
    const Maximum here{level_of, building_ ? Phase::kBuild : event.phase, event.step,
                       totals_.allocated_bytes(), 0};
    phases_[static_cast<std::size_t>(here.phase)].look(totals_, here);
    if (building_ && !trace_.counts_build) return;
    peak_.look(totals_, here);
    reserved_ = std::max(reserved_, totals_.reserved_bytes());
  }

  Maxima take_result() const {
    Maxima maxima;
    const auto& build = phases_[static_cast<std::size_t>(Phase::kBuild)];
    maxima.peak = peak_.seen ? peak_.found : build.found;
    for (std::size_t i = 0; i < kPhaseCount; ++i)
      if (phases_[i].seen) maxima.phases[i] = phases_[i].found;
    if (totals_.has_segments())
      maxima.reserved_bytes = peak_.seen ? reserved_ : totals_.reserved_bytes();
    return maxima;
  }

 private:
  const Trace& trace_;
  const RunningTotals& totals_;
  bool building_ = true;
  Highest peak_;
  std::array<Highest, kPhaseCount> phases_;
  std::int64_t reserved_ = 0;
};

Maxima walk_through(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                    const std::vector<std::int32_t>& owners, int space) {
  RunningTotals totals(trace, lifetimes, owners, space);
  Walk walk(trace, totals);
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    walk.look(i, i > 0 ? i - 1 : 0);
    totals.take(i);
    walk.look(i, i);
  }
  return walk.take_result();
}

}  // namespace

Maxima maxima(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space) {
  return walk_through(trace, lifetimes, lifetime_of_event(trace, lifetimes), space);
}

std::vector<Maxima> maxima_of_spaces(const Trace& trace, const std::vector<Lifetime>& lifetimes) {
  const auto owners = lifetime_of_event(trace, lifetimes);
  std::vector<Maxima> all;
  for (std::size_t space = 0; space < trace.spaces.size(); ++space)
    all.push_back(walk_through(trace, lifetimes, owners, static_cast<int>(space)));
  return all;
}

Peak peak_of(const Trace& trace, const std::vector<Lifetime>& lifetimes, const Maxima& maxima,
             int space) {
  Peak peak;
  if (trace.events.empty()) return peak;
  peak.event = maxima.peak.event;
  peak.phase = maxima.peak.phase;
  peak.step = maxima.peak.step;
  peak.by_category = by_category(breakdown_at(trace, lifetimes, peak.event, space));
  for (const auto bytes : peak.by_category) peak.allocated_bytes += bytes;
  peak.requested_bytes =
      peak.allocated_bytes - peak.by_category[static_cast<std::size_t>(Category::kAllocatorSlack)];
  return peak;
}

Peak find_peak(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space) {
  return peak_of(trace, lifetimes, maxima(trace, lifetimes, space), space);
}

}  // namespace peakbench::trace
