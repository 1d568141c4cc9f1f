// Autocast as it was in forward. It is state of a thread, and backward may run on another.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <vector>

namespace peakbench::checkpointing {

// What torch.amp.autocast sets for one type of device.
struct AutocastState {
  at::DeviceType device;
  bool enabled, cache_enabled;
  at::ScalarType dtype;

  static AutocastState of(at::DeviceType device);
  void restore() const;
};

// Puts states in place, and those found there back when destroyed; leaving the outermost autocast
// empties its cache of cast weights. torch/amp/autocast_mode.py
class AutocastScope {
 public:
  explicit AutocastScope(const std::vector<AutocastState>& states);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  std::vector<AutocastState> outer_;
};

}  // namespace peakbench::checkpointing
