// How long a step takes on a device.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace peakbench::device {

class Timing {
 public:
  virtual ~Timing() = default;
  virtual std::string clock() const = 0;  // steady_clock | cuda_event
  // Why steps on this device are not timed; empty when they are.
  virtual std::string why_not_timed() const { return {}; }
  virtual void synchronise() {}
  // Runs `step` and returns how long it took on this device's clock, in nanoseconds, waiting for it
  // to end.
  virtual std::int64_t time_ns(const std::function<void()>& step);
};

}  // namespace peakbench::device
