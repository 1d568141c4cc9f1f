// How parameters are updated from gradients: Adam, SGD, 8-bit Adam, ... One owner a recipe, and any
// number of wrappers around it: offloaded state, a master copy, projected gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "peakbench/memory.h"

namespace peakbench {

struct Parameter {
  std::string name;  // path in the module tree
  at::Tensor tensor;
};

// Whether one kernel handles many tensors (torch.optim's foreach), one each (single), or one does
// everything (fused).
enum class KernelGrouping { kForeach, kSingle, kFused };

class UpdateRule : public HoldsMemory {
 public:
  // One update of these parameters from their .grad(); those without one are passed over. State is
  // made at a parameter's first update, and belongs to its TensorImpl. Called with grad mode off,
  // by the schedule: with all parameters after backward, or with one at a time inside it (on the
  // thread that runs backward).
  virtual void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) = 0;

  // Every state tensor that exists now: parameter, what it is ("exp_avg"), the tensor. The visitor
  // may put another tensor in its place, of the same shape and dtype: a copy on another device.
  // Asked after each update, before what is around the rule goes on, so that state is named while
  // it is where the rule left it.
  using StateVisitor =
      std::function<void(const at::Tensor& parameter, const std::string& name, at::Tensor& state)>;
  virtual void visit_state(const StateVisitor& visit) = 0;

  // Drops the state of a parameter that is no longer trained; its next update starts anew.
  virtual void forget(const at::Tensor& parameter) = 0;
};

// Makes a rule around another. It may give the inner one other tensors than the model's parameters
// (a copy in single precision, a projection), each with a name and a gradient, as long as a
// parameter's stand-in stays the same TensorImpl; its visit_state then tells the inner state under
// the model's parameter.
class UpdateRuleWrapper : public HoldsMemory {
 public:
  virtual std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) = 0;
};

// Places of update-rule wrappers, outermost first. kAverage sees the update as it reached the
// model's parameters; kOffload moves parameters, gradients or state; kMaster keeps a copy in
// another dtype; kProject gives the rule smaller gradients.
enum class UpdatePlace { kAverage, kOffload, kMaster, kProject };

}  // namespace peakbench
