#include "worker/state_names.h"

#include <unordered_set>

namespace peakbench::worker {

StateNames::StateNames(const std::vector<Parameter>& parameters) {
  for (const Parameter& parameter : parameters)
    owners_.emplace(parameter.tensor.unsafeGetTensorImpl(), parameter.name);
}

std::string StateNames::name_of(const at::Tensor& parameter, const std::string& state) const {
  const auto owner = owners_.find(parameter.unsafeGetTensorImpl());
  return owner == owners_.end() ? state : owner->second + "." + state;
}

void StateNames::name(UpdateRule& rule, Observer& observer) const {
  rule.visit_state([&](const at::Tensor& parameter, const std::string& name, at::Tensor& state) {
    observer.name_storage(state, StorageRole::kOptimizerState, name_of(parameter, name));
  });
}

void StateNames::name(UpdateRule& rule, const std::vector<Parameter>& updated, Observer& observer) {
  std::unordered_set<const at::TensorImpl*> now;
  for (const Parameter& parameter : updated) {
    now.insert(parameter.tensor.unsafeGetTensorImpl());
    owners_.try_emplace(parameter.tensor.unsafeGetTensorImpl(), parameter.name);
  }
  rule.visit_state([&](const at::Tensor& parameter, const std::string& name, at::Tensor& state) {
    const auto* owner = parameter.unsafeGetTensorImpl();
    if (!now.contains(owner) && owners_.contains(owner)) return;
    observer.name_storage(state, StorageRole::kOptimizerState, name_of(parameter, name));
  });
}

}  // namespace peakbench::worker
