// A device that a worker's case runs on.
#pragma once

#include <c10/core/Device.h>

#include "device/facts.h"
#include "device/timing.h"
#include "device/tracing.h"

namespace peakbench::device {

class Device : public Tracing, public Timing, public Facts {
 public:
  virtual c10::Device torch_device() const = 0;
};

}  // namespace peakbench::device
