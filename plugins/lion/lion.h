// Lion: the sign of an interpolation of momentum and gradient. Source: "Symbolic Discovery of
// Optimization Algorithms", algorithm 2, https://arxiv.org/abs/2302.06675. PyTorch has none; the
// operators are chosen so that an update has one temporary of a tensor's size (single) or of all
// tensors' (foreach).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "peakbench/state_map.h"
#include "peakbench/update_rule.h"

namespace peakbench::lion {

struct LionOptions {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;  // decoupled
};

class Lion : public UpdateRule {
 public:
  explicit Lion(LionOptions options) : options_(options) {}
  // Throws Unsupported for kFused.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override;
  void visit_state(const StateVisitor& visit) override;
  void forget(const at::Tensor& parameter) override;

 private:
  LionOptions options_;
  StateMap<at::Tensor> exp_avgs_;
};

}  // namespace peakbench::lion
