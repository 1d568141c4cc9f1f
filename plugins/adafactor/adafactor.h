// torch.optim.Adafactor, the same operators in the same order, so that state, temporaries and
// results are the same to the bit. Source: torch/optim/_adafactor.py, _single_tensor_adafactor and
// _multi_tensor_adafactor. Method: https://arxiv.org/abs/1804.04235
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "peakbench/gradient_groups.h"
#include "peakbench/state_map.h"
#include "peakbench/update_rule.h"

namespace peakbench::adafactor {

struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8;
  double eps2 = 1e-3;  // least root mean square of a parameter that a step is scaled by
  double d = 1;        // clipping threshold
  double weight_decay = 0;
  bool foreach = false;  // PyTorch's default, unlike other rules'
};

// Of a matrix (..., n, m), the mean squares of its rows (..., n, 1) and columns (..., 1, m); of a
// vector, `variance` of its size. `step` is a float32 scalar on the CPU.
struct AdafactorState {
  at::Tensor step, row_var, col_var, variance;
};

// Parameters with their gradients and state: lists of equal length.
struct AdafactorGroup : GradientGroup {
  std::vector<AdafactorState> states;
};

void adafactor_single(AdafactorGroup& group, const AdafactorOptions& options);
// Of one device and dtype.
void adafactor_foreach(AdafactorGroup& group, const AdafactorOptions& options);

// Numbers of one step that do not depend on the gradient.
struct StepNumbers {
  double one_minus_beta2, alpha;
  // Reads the parameter's norm back from its device.
  StepNumbers(const at::Tensor& parameter, double step, const AdafactorOptions& options);
};
double clipped(double alpha, const at::Tensor& update, const AdafactorOptions& options);
double machine_epsilon(at::ScalarType dtype);  // eps1's default
// Mean of the squares along `dim`, kept as a dimension of one.
at::Tensor norm_along(const at::Tensor& gradient, std::int64_t dim);

class Adafactor : public UpdateRule {
 public:
  explicit Adafactor(AdafactorOptions options) : options_(options) {}
  // The kernels are the option's, not the grouping's, as foreach and single kernels round apart.
  // Throws Unsupported for kFused.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override;
  void visit_state(const StateVisitor& visit) override;
  void forget(const at::Tensor& parameter) override;

 private:
  AdafactorOptions options_;
  StateMap<AdafactorState> states_;
};

}  // namespace peakbench::adafactor
