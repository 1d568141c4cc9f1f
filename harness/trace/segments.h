// The address ranges an allocator holds, while a trace goes by. For the module's own use.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::trace {

struct Segment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int32_t stream = 0;
  bool expandable = false;
};

// A segment that is mapped (expandable segments) joins its neighbours of the same stream.
class SegmentMap {
 public:
  void take(const Event& event);  // segment events; others change nothing
  void add(Segment segment);
  void remove(std::uint64_t address, std::int64_t bytes);  // of one segment, as far as it goes
  const Segment* at(std::uint64_t address) const;          // null: in none
  bool contains(std::uint64_t address, std::int64_t bytes) const;
  std::vector<Segment> segments() const;  // in order of address

 private:
  std::map<std::uint64_t, Segment> by_address_;
};

// Segments for blocks outside every recorded segment (the CPU has none): the ranges of addresses
// that those blocks ever used, as segments that exist from the start.
std::vector<Segment> synthesised_segments(const Trace& trace,
                                          const std::vector<Lifetime>& lifetimes, int space);

}  // namespace peakbench::trace
