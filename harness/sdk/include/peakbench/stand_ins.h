// The tensors that an update-rule wrapper gives its inner rule in place of the model's parameters.
#pragma once

#include <string>
#include <unordered_map>

#include "peakbench/state_map.h"
#include "peakbench/update_rule.h"

namespace peakbench {

// What a wrapper keeps of each parameter. `State` has a member `at::Tensor tensor`, the stand-in,
// which stays the same TensorImpl.
template <typename State>
class StandIns {
 public:
  // The parameter's state; `make()` is called for its first.
  template <typename Make>
  State& of(const at::Tensor& parameter, Make&& make) {
    State& state = states_.of(parameter, std::forward<Make>(make));
    owners_.try_emplace(state.tensor.unsafeGetTensorImpl(), parameter);
    return state;
  }

  // The inner rule's state: a stand-in's under the parameter that it stands for.
  void visit_inner(UpdateRule& inner, const UpdateRule::StateVisitor& visit) const {
    inner.visit_state([&](const at::Tensor& owner, const std::string& name, at::Tensor& state) {
      const auto found = owners_.find(owner.unsafeGetTensorImpl());
      visit(found == owners_.end() ? owner : found->second, name, state);
    });
  }

  // Here and in the inner rule.
  void forget(UpdateRule& inner, const at::Tensor& parameter) {
    const State* state = states_.find(parameter);
    inner.forget(state == nullptr ? parameter : state->tensor);
    if (state == nullptr) return;
    owners_.erase(state->tensor.unsafeGetTensorImpl());
    states_.forget(parameter);
  }

  // Pairs of parameter and state.
  auto begin() { return states_.begin(); }
  auto end() { return states_.end(); }

 private:
  StateMap<State> states_;
  std::unordered_map<const at::TensorImpl*, at::Tensor> owners_;  // by stand-in
};

}  // namespace peakbench
