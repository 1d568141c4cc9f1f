#include "worker/code_place.h"

#include <memory>
#include <vector>

namespace peakbench::worker {
namespace {

// Of this thread, the innermost last. The texts are a ModulePaths' and the dispatcher's.
thread_local std::vector<std::string_view> modules_entered;
thread_local std::vector<const char*> operators_entered;

std::unique_ptr<at::ObserverContext> enter_operator(const at::RecordFunction& function) {
  operators_entered.push_back(function.name());
  return nullptr;
}

void leave_operator(const at::RecordFunction&, at::ObserverContext*) {
  operators_entered.pop_back();
}

}  // namespace

std::string_view current_module() {
  return modules_entered.empty() ? std::string_view() : modules_entered.back();
}
std::string_view current_operator() {
  return operators_entered.empty() ? std::string_view() : operators_entered.back();
}

ModulePaths::ModulePaths(const torch::nn::Module& root) : before_(module_observer()) {
  paths_.emplace(&root, "");
  for (const auto& item : root.named_modules(std::string(), /*include_self=*/false))
    paths_.emplace(item.value().get(), item.key());
  set_module_observer(this);
}

ModulePaths::~ModulePaths() { set_module_observer(before_); }

void ModulePaths::enter_module(const torch::nn::Module& module) {
  const auto found = paths_.find(&module);
  modules_entered.push_back(found == paths_.end() ? std::string_view() : found->second);
  if (before_ != nullptr) before_->enter_module(module);
}

void ModulePaths::exit_module() {
  if (before_ != nullptr) before_->exit_module();
  modules_entered.pop_back();
}

FollowOperators::FollowOperators()
    : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(enter_operator, leave_operator)
                                             .scopes({at::RecordScope::FUNCTION}))) {}

FollowOperators::~FollowOperators() { at::removeCallback(handle_); }

}  // namespace peakbench::worker
