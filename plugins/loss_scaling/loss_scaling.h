// torch.amp.GradScaler: the same operators in the same order. Source: torch/amp/grad_scaler.py,
// scale, unscale_, step and update.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

#include "peakbench/memory.h"
#include "peakbench/update_rule.h"

namespace peakbench::loss_scaling {

class GradScaler {
 public:
  GradScaler(double init_scale, std::int64_t growth_interval)
      : init_scale_(init_scale), growth_interval_(growth_interval) {}

  // loss: a scalar -> a scalar. Makes the scale at its first call, on the loss's device.
  at::Tensor scale(const at::Tensor& loss);
  // Divides the gradients in place by the scale, then adapts the scale. False: some value is not
  // finite, and the update must not happen. Reads one number a device back.
  bool unscale(const std::vector<Parameter>& parameters);
  // What `unscale` found, 4 bytes a device, lives as long as GradScaler.update() is not called.
  void end_step() { found_.clear(); }
  void visit_memory(const MemoryVisitor& visit) const;

 private:
  bool adapt();

  static constexpr double kGrowth = 2.0, kBackoff = 0.5;

  double init_scale_;
  std::int64_t growth_interval_;
  at::Tensor scale_;           // fp32 scalar on the device
  at::Tensor growth_tracker_;  // int32 scalar: steps since the scale last changed
  std::unordered_map<at::Device, at::Tensor> found_;  // 1 where a gradient is not finite, else 0
};

}  // namespace peakbench::loss_scaling
