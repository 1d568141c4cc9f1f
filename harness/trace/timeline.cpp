#include "trace/timeline.h"

#include <algorithm>
#include <functional>

#include "trace/maxima.h"

namespace peakbench::trace {
namespace {

// Fills one timeline while the events of its range go by.
class Sampler {
 public:
  Sampler(std::size_t buckets, int space, std::uint64_t first, std::uint64_t last)
      : buckets_(std::min<std::uint64_t>(buckets, last - first)) {
    timeline_.space = space;
    timeline_.first = first;
    timeline_.last = last;
    timeline_.samples.reserve(buckets_);
  }

  void take(std::uint64_t number, const Event& event, const RunningTotals& totals) {
    auto& samples = timeline_.samples;
    if (buckets_ == 0) return;
    const bool fresh = samples.empty() || number >= samples.back().last;
    if (fresh) {
      samples.push_back({});
      samples.back().first = begin_of(samples.size() - 1);
      samples.back().last = begin_of(samples.size());
    }
    auto& sample = samples.back();
    if (!fresh && totals.allocated_bytes() <= sample.allocated_bytes) return;
    sample.event = number;
    sample.time_ns = event.time_ns;
    sample.allocated_bytes = totals.allocated_bytes();
    sample.requested_bytes = totals.requested_bytes();
    sample.reserved_bytes = totals.reserved_bytes();
    sample.by_category = totals.by_category();
  }

  Timeline take_result() { return std::move(timeline_); }

 private:
  std::uint64_t begin_of(std::uint64_t bucket) const {
    return timeline_.first + bucket * (timeline_.last - timeline_.first) / buckets_;
  }

  Timeline timeline_;
  std::uint64_t buckets_;
};

// Of samplers of one space; the events before `last`.
std::vector<Timeline> sampled(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                              std::vector<Sampler> samplers, int space, std::uint64_t first,
                              std::uint64_t last) {
  const auto owners = lifetime_of_event(trace, lifetimes);
  RunningTotals totals(trace, lifetimes, owners, space);
  for (std::uint64_t i = 0; i < last; ++i) {
    totals.take(i);
    for (auto& sampler : samplers)
      if (i >= first) sampler.take(i, trace.events[i], totals);
  }
  std::vector<Timeline> timelines;
  for (auto& sampler : samplers) timelines.push_back(sampler.take_result());
  return timelines;
}

}  // namespace

Timeline timeline(const Trace& trace, const std::vector<Lifetime>& lifetimes, std::size_t buckets,
                  int space, std::uint64_t first, std::uint64_t last) {
  last = std::min<std::uint64_t>(last, trace.events.size());
  first = std::min(first, last);
  space = space_or_own(trace, space);
  return sampled(trace, lifetimes, {Sampler(buckets, space, first, last)}, space, first, last)
      .front();
}

std::vector<Timeline> timeline_levels(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                                      const std::vector<std::size_t>& buckets, int space) {
  space = space_or_own(trace, space);
  std::vector<Sampler> samplers;
  for (const auto count : buckets) samplers.emplace_back(count, space, 0, trace.events.size());
  return sampled(trace, lifetimes, std::move(samplers), space, 0, trace.events.size());
}

std::vector<PhaseSpan> phase_spans(const Trace& trace) {
  std::vector<PhaseSpan> spans;
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    const auto& event = trace.events[i];
    if (spans.empty() || spans.back().phase != event.phase || spans.back().step != event.step) {
      if (!spans.empty()) spans.back().last_ns = event.time_ns;  // no gap on the time axis
      spans.push_back({event.phase, event.step, i, i, event.time_ns, event.time_ns});
    }
    spans.back().last = i + 1;
    spans.back().last_ns = event.time_ns;
  }
  return spans;
}

std::int64_t reserved_change(const Event& event) {
  switch (event.kind) {
    case EventKind::kSegmentAlloc:
    case EventKind::kSegmentMap:
      return event.block_bytes;
    case EventKind::kSegmentFree:
    case EventKind::kSegmentUnmap:
      return -event.block_bytes;
    default:
      return 0;
  }
}

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
  std::ranges::stable_sort(found, std::greater{}, &RangePeak::highest_bytes);
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
