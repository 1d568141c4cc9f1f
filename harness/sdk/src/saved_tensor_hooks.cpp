#include "peakbench/saved_tensor_hooks.h"

namespace peakbench {
namespace {
thread_local std::vector<std::shared_ptr<SavedTensorHooks>> hooks_of_thread;
}

SavedTensorHooksScope::SavedTensorHooksScope(std::shared_ptr<SavedTensorHooks> hooks) {
  hooks_of_thread.push_back(std::move(hooks));
}

SavedTensorHooksScope::~SavedTensorHooksScope() { hooks_of_thread.pop_back(); }

const std::vector<std::shared_ptr<SavedTensorHooks>>& current_saved_tensor_hooks() {
  return hooks_of_thread;
}

}  // namespace peakbench
