// Update rules compute a parameter's update from its gradient: Adam, SGD, 8-bit Adam. A recipe has
// one rule and any number of wrappers around it, for example for offloaded state, a master copy or
// projected gradients.
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

// How the kernels of an update handle the tensors, with torch.optim's names:
// - kForeach: one kernel handles many tensors (foreach).
// - kSingle: each kernel handles one tensor (single).
// - kFused: one kernel performs the whole update (fused).
enum class KernelGrouping { kForeach, kSingle, kFused };

class UpdateRule : public HoldsMemory {
 public:
  // Updates these parameters once from their .grad(), and skips parameters without a gradient. The
  // rule creates the state of a parameter at its first update. The state belongs to the parameter's
  // TensorImpl.
  //
  // The schedule causes the call, and grad mode is off. A call has all parameters after backward,
  // or one parameter inside backward, on the thread that runs backward.
  virtual void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) = 0;

  // Passes every state tensor that exists now to `visit`: the parameter, the state's name (such as
  // "exp_avg"), and the tensor. The visitor may replace the tensor by another one of the same shape
  // and dtype, for example a copy on another device.
  //
  // If memory is traced, the worker calls this after each step, and after each update before the
  // surrounding wrappers continue. The state is thus named while it is where the rule left it.
  using StateVisitor =
      std::function<void(const at::Tensor& parameter, const std::string& name, at::Tensor& state)>;
  virtual void visit_state(const StateVisitor& visit) = 0;

  // Drops the state of a parameter that is no longer trained. Its next update creates new state.
  virtual void forget(const at::Tensor& parameter) = 0;
};

// Makes a rule around another rule. The outer rule may give the inner rule other tensors than the
// model's parameters, such as a copy in single precision or a projection. These conditions must
// hold then:
// - Each replacement tensor has a name and a gradient.
// - The replacement of a parameter stays the same TensorImpl.
// - The outer rule's visit_state shows the inner state under the model's parameter.
class UpdateRuleWrapper : public HoldsMemory {
 public:
  virtual std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) = 0;
};

// The positions of update-rule wrappers, outermost first:
// - kAverage: sees the update after it has reached the model's parameters.
// - kOffload: moves parameters, gradients or state.
// - kMaster: keeps a copy of the parameters in another dtype.
// - kProject: gives the rule smaller gradients.
enum class UpdatePlace { kAverage, kOffload, kMaster, kProject };

}  // namespace peakbench
