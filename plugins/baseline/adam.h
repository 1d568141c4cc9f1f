// torch.optim.Adam and AdamW with their defaults, the same operators in the same order, so that
// state, temporaries and results are the same to the bit. Source: torch/optim/adam.py,
// _single_tensor_adam, _multi_tensor_adam and _fused_adam.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "peakbench/gradient_groups.h"
#include "peakbench/state_map.h"
#include "peakbench/update_rule.h"

namespace peakbench::baseline {

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // decoupled: AdamW's; its default is 1e-2
};

// `step` is a float32 scalar, 4 bytes a parameter: on the CPU, as torch.optim keeps it when neither
// capturable nor fused; beside the parameter for the fused kernel.
struct AdamState {
  at::Tensor step, exp_avg, exp_avg_sq;
};

// Parameters with their gradients and state: lists of equal length.
struct AdamGroup : GradientGroup {
  std::vector<at::Tensor> exp_avgs, exp_avg_sqs, steps;
};

class Adam : public UpdateRule {
 public:
  explicit Adam(AdamOptions options) : options_(options) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override;
  void visit_state(const StateVisitor& visit) override;
  void forget(const at::Tensor& parameter) override;

 private:
  AdamGroup with_state(GradientGroup tensors);

  AdamOptions options_;
  StateMap<AdamState> states_;
};

}  // namespace peakbench::baseline
