// The processes that one has started, theirs too: the memory they hold, and the end of them all.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace peakbench::process {

// Those that /proc shows at the moment, in no order, without the ancestor itself.
std::vector<pid_t> descendants_of(pid_t ancestor);

// Watches what the descendants of this process hold together.
class TreeMemory {
 public:
  using Clock = std::chrono::steady_clock;

  // `first`: the one that is known from the start. No limit: 0.
  TreeMemory(pid_t first, std::int64_t limit_bytes) : all_{first}, limit_(limit_bytes) {}

  // Whether the processes hold more than the limit. Shared pages count once if the system reports
  // them. Checks at most every 20 ms, and spends at most a hundredth of the time on new processes.
  bool over(Clock::time_point now);

 private:
  void look_for_more(Clock::time_point now);

  std::vector<pid_t> all_;
  std::int64_t limit_;
  Clock::time_point looked_, searched_, counted_;
  Clock::duration between_searches_{0};
};

// Kills and reaps all descendants of this process, which must be a child subreaper: what loses its
// parent becomes its child. The number of those that could not be ended within `patience`.
int end_descendants(std::chrono::milliseconds patience);

}  // namespace peakbench::process
