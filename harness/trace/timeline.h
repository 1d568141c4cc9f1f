#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::trace {

// Memory over time from a trace, in as many points as a chart can show.

// The highest moment of a bucket of consecutive events. by_category sums to allocated_bytes.
struct TimelineSample {
  std::uint64_t first = 0, last = 0;  // the bucket's events: [first, last)
  std::uint64_t event = 0;            // the first of them at which allocated bytes are highest
  std::int64_t time_ns = -1;          // of that event; -1 where events are numbered
  std::int64_t allocated_bytes = 0, requested_bytes = 0;
  std::int64_t reserved_bytes = 0;  // at that event; 0 where the space has no segments
  std::array<std::int64_t, kCategoryCount> by_category{};
};

// Consecutive events of one phase of one step: [first, last).
struct PhaseSpan {
  Phase phase = Phase::kBuild;
  std::int32_t step = kNone;
  std::uint64_t first = 0, last = 0;
  std::int64_t first_ns = -1, last_ns = -1;
};

struct Timeline {
  int space = 0;
  std::uint64_t first = 0, last = 0;    // the events shown: [first, last)
  std::vector<TimelineSample> samples;  // in order, without gaps, at most as many as asked for
};

// One level of detail: the events [first, last) (last beyond the end: to the end) in at most
// `buckets` buckets of equal length. No maximum is lost: the peak of the range is a sample's event.
Timeline timeline(const Trace& trace, const std::vector<Lifetime>& lifetimes, std::size_t buckets,
                  int space = kOwnSpace, std::uint64_t first = 0,
                  std::uint64_t last = ~std::uint64_t{0});

// The complete trace at several levels, e.g. {500, 4000, 32000}; in one pass over the events.
std::vector<Timeline> timeline_levels(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                                      const std::vector<std::size_t>& buckets,
                                      int space = kOwnSpace);

std::vector<PhaseSpan> phase_spans(const Trace& trace);

// By how much the event changes what its space has reserved; 0 of all but segments.
std::int64_t reserved_change(const Event& event);

// What a program reaches and holds in the ranges that it names. Pure.

// With those around it: "epoch > rollout"; empty for kNone.
std::string range_name(const Trace& trace, std::int32_t range);

struct RangePeak {
  std::int32_t range = kNone;
  std::int64_t highest_bytes = 0;  // allocated at the most while it was open
  std::int64_t alive_bytes = 0;    // blocks that were allocated in it and are alive at the event
};

// Of every range with an event in the space, the highest first. What happens in a range counts in
// those around it, too. Alive: after `event`.
std::vector<RangePeak> range_peaks(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                                   std::uint64_t event, int space = kOwnSpace);

// The most that private pools had reserved (a CUDA graph's, or a torch.cuda.MemPool), which other
// allocations cannot use. And the reserved bytes of the space at that moment.
struct PrivatePools {
  std::int64_t private_bytes = 0;
  std::int64_t reserved_bytes = 0;
};
PrivatePools private_pools(const Trace& trace, int space = kOwnSpace);

}  // namespace peakbench::trace
