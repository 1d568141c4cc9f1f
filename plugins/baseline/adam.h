// torch.optim.Adam and AdamW with their defaults, the same operators in the same order, so that
// state, temporaries and results are the same to the bit. Source: torch/optim/adam.py,
// _single_tensor_adam and _multi_tensor_adam.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

#include "peakbench/update_rule.h"

namespace peakbench::baseline {

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // decoupled: AdamW's; its default is 1e-2
};

// `step` is a float32 scalar on the CPU, 4 bytes a parameter, as torch.optim keeps it when not
// capturable.
struct AdamState {
  at::Tensor step, exp_avg, exp_avg_sq;
};

// Parameters of one device and dtype, each with its gradient and state: lists of equal length.
struct AdamGroup {
  std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs, steps;
};

void adam_single(AdamGroup& group, const AdamOptions& options);
void adam_foreach(AdamGroup& group, const AdamOptions& options);

class Adam : public UpdateRule {
 public:
  explicit Adam(AdamOptions options) : options_(options) {}
  void update(const std::vector<at::Tensor>& parameters, KernelGrouping grouping) override;
  void visit_state(const StateVisitor& visit) const override;

 private:
  AdamState& state_of(const at::Tensor& parameter);

  AdamOptions options_;
  std::vector<std::pair<at::Tensor, AdamState>> states_;          // in order of first update
  std::unordered_map<const at::TensorImpl*, std::size_t> index_;  // into states_
};

}  // namespace peakbench::baseline
