#include "device/timing.h"

#include <chrono>

namespace peakbench::device {

std::int64_t Timing::time_ns(const std::function<void()>& step) {
  synchronise();
  const auto start = std::chrono::steady_clock::now();
  step();
  synchronise();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              start)
      .count();
}

}  // namespace peakbench::device
