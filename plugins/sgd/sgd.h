// torch.optim.SGD with no dampening, the same operators in the same order, so that state,
// temporaries and results are the same to the bit. Source: torch/optim/sgd.py, _single_tensor_sgd
// and _multi_tensor_sgd.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "peakbench/gradient_groups.h"
#include "peakbench/state_map.h"
#include "peakbench/update_rule.h"

namespace peakbench::sgd {

struct SgdOptions {
  double lr = 1e-3, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};

// The buffer of each parameter of a group, undefined before its first update; none without
// momentum. A kernel makes those that are missing.
using Buffers = std::vector<at::Tensor>;

void sgd_single(GradientGroup& group, Buffers& buffers, const SgdOptions& options);
void sgd_foreach(GradientGroup& group, Buffers& buffers, const SgdOptions& options);

class Sgd : public UpdateRule {
 public:
  explicit Sgd(SgdOptions options);  // throws OptionError for nesterov without momentum
  // Throws Unsupported for kFused.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override;
  void visit_state(const StateVisitor& visit) override;
  void forget(const at::Tensor& parameter) override;

 private:
  SgdOptions options_;
  StateMap<at::Tensor> momentum_buffers_;
};

}  // namespace peakbench::sgd
