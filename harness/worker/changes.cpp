#include "worker/changes.h"

#include <ATen/record_function.h>

#include <string>
#include <unordered_map>
#include <utility>

namespace peakbench::worker {
namespace {

// Of this thread; the callback has no state of its own.
thread_local ChangeWatch* innermost = nullptr;
thread_local at::CallbackHandle listening{};

// Which arguments the operator's schema says that it writes to: `Tensor(a!) self`.
const std::vector<std::size_t>& written_arguments(const at::RecordFunction& function) {
  thread_local std::unordered_map<std::string, std::vector<std::size_t>> known;
  const auto [found, is_new] =
      known.try_emplace(std::string(function.name()) + '.' + function.overload_name());
  if (!is_new) return found->second;
  const auto schema = function.operator_schema();
  if (!schema) return found->second;
  const auto& arguments = schema->arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].alias_info() != nullptr && arguments[i].alias_info()->isWrite())
      found->second.push_back(i);
  return found->second;
}

void note_write(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  for (ChangeWatch* watch = innermost; watch != nullptr; watch = watch->outer())
    watch->note_write(tensor);
}

std::unique_ptr<at::ObserverContext> on_operator(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  for (const std::size_t argument : written_arguments(function)) {
    if (argument >= inputs.size()) continue;
    const c10::IValue& value = inputs[argument];
    if (value.isTensor()) note_write(value.toTensor());
    if (!value.isTensorList()) continue;
    for (const at::Tensor& tensor : value.toTensorVector()) note_write(tensor);
  }
  return nullptr;
}

}  // namespace

ChangeWatch::ChangeWatch(const std::vector<Parameter>& parameters, bool listens)
    : parameters_(parameters), listens_(listens) {
  before_.reserve(parameters.size());
  for (const Parameter& parameter : parameters) before_.push_back(version_of(parameter.tensor));
  if (!listens_) return;
  outer_ = std::exchange(innermost, this);
  if (outer_ == nullptr)
    listening = at::addThreadLocalCallback(at::RecordFunctionCallback(on_operator)
                                               .needsInputs(true)
                                               .scopes({at::RecordScope::FUNCTION}));
}

ChangeWatch::~ChangeWatch() {
  if (!listens_) return;
  innermost = outer_;
  if (outer_ == nullptr) at::removeCallback(listening);
}

ChangeWatch::Version ChangeWatch::version_of(const at::Tensor& tensor) {
  return {tensor._version(), tensor.has_storage() ? tensor.storage().data() : nullptr};
}

void ChangeWatch::note_write(const at::Tensor& tensor) {
  written_.insert(tensor.storage().unsafeGetStorageImpl());
}

bool ChangeWatch::changed(std::size_t index) const {
  const at::Tensor& tensor = parameters_[index].tensor;
  return version_of(tensor) != before_[index] ||
         (tensor.has_storage() && written_.contains(tensor.storage().unsafeGetStorageImpl()));
}

bool ChangeWatch::changed_any() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (changed(i)) return true;
  return false;
}

}  // namespace peakbench::worker
