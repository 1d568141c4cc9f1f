#include "worker/record_observer.h"

#include <torch/nn/module.h>

namespace peakbench::worker {
namespace {

trace::Role role_of(StorageRole role) {
  switch (role) {
    case StorageRole::kParameter:
      return trace::Role::kParameter;
    case StorageRole::kBuffer:
      return trace::Role::kBuffer;
    case StorageRole::kGradient:
      return trace::Role::kGradient;
    case StorageRole::kOptimizerState:
      return trace::Role::kOptimizerState;
    case StorageRole::kInput:
      return trace::Role::kInput;
    case StorageRole::kKept:
      return trace::Role::kKept;
  }
  return trace::Role::kParameter;
}

}  // namespace

void RecordObserver::name_modules(const torch::nn::Module& root) {
  modules_[&root] = recorder_.intern_module("");
  for (const auto& item : root.named_modules(std::string(), /*include_self=*/false))
    modules_[item.value().get()] = recorder_.intern_module(item.key());
}

void RecordObserver::enter_module(const torch::nn::Module& module) {
  const auto found = modules_.find(&module);
  recorder_.enter_module(found == modules_.end() ? trace::kNone : found->second);
}

void RecordObserver::name_storage(const at::Tensor& tensor, StorageRole role,
                                  const std::string& name) {
  recorder_.name_storage(tensor, role_of(role), name);
}

}  // namespace peakbench::worker
