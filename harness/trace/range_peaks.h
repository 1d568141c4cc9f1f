// What a program reaches and holds in the ranges that it names. Pure.
#pragma once

#include <string>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::trace {

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

// The most that private pools had reserved (a CUDA graph's, or a torch.cuda.MemPool): nobody else
// is given it. And what the space had reserved then, in all.
struct PrivatePools {
  std::int64_t private_bytes = 0;
  std::int64_t reserved_bytes = 0;
};
PrivatePools private_pools(const Trace& trace, int space = kOwnSpace);

}  // namespace peakbench::trace
