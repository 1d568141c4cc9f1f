// How often run.json is written.
#pragma once

#include <chrono>
#include <cstddef>

namespace peakbench::launch {

// After every worker, while a run is small. Each writing takes as long as the run is large: of many
// cases that take a tenth of a second each, it would take most of the time. Then it gets a tenth.
class WritePace {
 public:
  using Clock = std::chrono::steady_clock;

  bool due(std::size_t cases, Clock::time_point now) const {
    constexpr std::size_t kFew = 100;
    constexpr int kPausePerWriting = 9;
    return cases <= kFew || now - ended_ >= kPausePerWriting * took_;
  }
  void wrote(Clock::time_point from, Clock::time_point to) {
    took_ = to - from;
    ended_ = to;
  }

 private:
  Clock::duration took_{};
  Clock::time_point ended_;
};

}  // namespace peakbench::launch
