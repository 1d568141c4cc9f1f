// Keeps the replacement tensors that an update-rule wrapper gives its inner rule in place of the
// model's parameters.
#pragma once

#include <string>
#include <unordered_map>

#include "peakbench/state_map.h"
#include "peakbench/update_rule.h"

namespace peakbench {

// Maps each parameter to the state that a wrapper keeps for it. `State` has a member `tensor`
// (at::Tensor), the replacement tensor. It must stay the same TensorImpl.
template <typename State>
class StandIns {
 public:
  // Returns the parameter's state. The first call for a parameter creates the state by `make()`.
  // The reference is valid until a state is created for another parameter, or one is forgotten.
  template <typename Make>
  State& of(const at::Tensor& parameter, Make&& make) {
    State& state = states_.of(parameter, std::forward<Make>(make));
    owners_.try_emplace(state.tensor.unsafeGetTensorImpl(), parameter);
    return state;
  }

  // Visits the inner rule's state. The state of a replacement tensor is shown under the model's
  // parameter.
  void visit_inner(UpdateRule& inner, const UpdateRule::StateVisitor& visit) const {
    inner.visit_state([&](const at::Tensor& owner, const std::string& name, at::Tensor& state) {
      const auto found = owners_.find(owner.unsafeGetTensorImpl());
      visit(found == owners_.end() ? owner : found->second, name, state);
    });
  }

  // Drops the parameter's state here and in the inner rule.
  void forget(UpdateRule& inner, const at::Tensor& parameter) {
    const State* state = states_.find(parameter);
    inner.forget(state == nullptr ? parameter : state->tensor);
    if (state == nullptr) return;
    owners_.erase(state->tensor.unsafeGetTensorImpl());
    states_.forget(parameter);
  }

  // The elements are pairs of parameter and state, in the order of their creation.
  auto begin() { return states_.begin(); }
  auto end() { return states_.end(); }

 private:
  StateMap<State> states_;
  std::unordered_map<const at::TensorImpl*, at::Tensor> owners_;  // by replacement
};

}  // namespace peakbench
