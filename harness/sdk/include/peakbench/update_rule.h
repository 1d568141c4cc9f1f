// How parameters are updated from gradients: Adam, SGD, 8-bit Adam, ... One owner a recipe.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace peakbench {

// Whether one kernel handles many tensors (torch.optim's foreach), one each (single), or one does
// everything (fused).
enum class KernelGrouping { kForeach, kSingle, kFused };

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // One update of these parameters from their .grad(); those without one are passed over. State is
  // made at a parameter's first update. Called with grad mode off, by the schedule: with all
  // parameters after backward, or with one at a time inside it (on the thread that runs backward).
  virtual void update(const std::vector<at::Tensor>& parameters, KernelGrouping grouping) = 0;

  // Every state tensor that exists now, for the tracer: parameter, what it is ("exp_avg"), the
  // tensor.
  using StateVisitor = std::function<void(const at::Tensor& parameter, const std::string& name,
                                          const at::Tensor& state)>;
  virtual void visit_state(const StateVisitor& visit) const = 0;
};

}  // namespace peakbench
