#include "trace/maxima.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "trace/timeline.h"

namespace peakbench::trace {

Breakdown breakdown_at(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                       std::uint64_t event, int space) {
  if (event >= trace.events.size()) throw std::out_of_range("breakdown_at: no such event");
  space = space_or_own(trace, space);
  Breakdown breakdown{};
  for (const auto& lifetime : lifetimes) {
    if (lifetime.first > event) break;
    const auto& alloc = trace.events[lifetime.first];
    if (lifetime.last <= event || alloc.space != space) continue;
    const auto phase = static_cast<std::size_t>(alloc.phase);
    breakdown[static_cast<std::size_t>(lifetime.category)][phase] += alloc.requested_bytes;
    breakdown[static_cast<std::size_t>(Category::kAllocatorSlack)][phase] +=
        alloc.block_bytes - alloc.requested_bytes;
  }
  return breakdown;
}

std::int64_t total(const Breakdown& breakdown) {
  std::int64_t sum = 0;
  for (const auto& phases : breakdown)
    for (const auto bytes : phases) sum += bytes;
  return sum;
}

std::array<std::int64_t, kCategoryCount> by_category(const Breakdown& breakdown) {
  std::array<std::int64_t, kCategoryCount> sums{};
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    sums[i] = std::accumulate(breakdown[i].begin(), breakdown[i].end(), std::int64_t{0});
  return sums;
}

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
