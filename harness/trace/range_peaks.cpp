#include "trace/range_peaks.h"

#include <algorithm>

#include "trace/running_totals.h"
#include "trace/timeline.h"

namespace peakbench::trace {
namespace {

template <class Visit>
void for_each_around(const Trace& trace, std::int32_t range, Visit visit) {
  for (; range != kNone; range = trace.ranges[static_cast<std::size_t>(range)].parent)
    visit(static_cast<std::size_t>(range));
}

}  // namespace

std::string range_name(const Trace& trace, std::int32_t range) {
  std::string text;
  for_each_around(trace, range, [&](std::size_t at) {
    text = trace.ranges[at].name + (text.empty() ? "" : " > " + text);
  });
  return text;
}

std::vector<RangePeak> range_peaks(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                                   std::uint64_t event, int space) {
  if (trace.ranges.empty()) return {};
  space = space_or_own(trace, space);
  std::vector<RangePeak> peaks(trace.ranges.size());
  std::vector<bool> seen(trace.ranges.size());
  const auto owners = lifetime_of_event(trace, lifetimes);  // which the totals only refer to
  RunningTotals totals(trace, lifetimes, owners, space);
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    const auto before = totals.allocated_bytes();
    totals.take(i);
    if (trace.events[i].space != space || !is_counted(trace, trace.events[i].step)) continue;
    for_each_around(trace, trace.events[i].range, [&](std::size_t at) {
      seen[at] = true;
      peaks[at].highest_bytes =
          std::max({peaks[at].highest_bytes, before, totals.allocated_bytes()});
    });
  }
  for (const auto& lifetime : lifetimes) {
    const auto& made = trace.events[lifetime.first];
    if (lifetime.first > event || lifetime.last <= event || made.space != space) continue;
    for_each_around(trace, made.range,
                    [&](std::size_t at) { peaks[at].alive_bytes += made.block_bytes; });
  }
  std::vector<RangePeak> found;
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    peaks[i].range = static_cast<std::int32_t>(i);
    if (seen[i]) found.push_back(peaks[i]);
  }
  std::ranges::stable_sort(found, [](const RangePeak& a, const RangePeak& b) {
    return a.highest_bytes > b.highest_bytes;
  });
  return found;
}

PrivatePools private_pools(const Trace& trace, int space) {
  space = space_or_own(trace, space);
  PrivatePools now, most;
  for (const auto& event : trace.events) {
    if (event.space != space) continue;
    const auto change = reserved_change(event);
    now.reserved_bytes += change;
    if (event.pool != kNone) now.private_bytes += change;
    if (now.private_bytes > most.private_bytes) most = now;
  }
  return most;
}

}  // namespace peakbench::trace
