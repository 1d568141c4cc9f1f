#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "peakbench/device_graph.h"
#include "peakbench/gradient_groups.h"
#include "peakbench/host_memory.h"
#include "peakbench/observer.h"
#include "peakbench/options.h"
#include "peakbench/saved_tensor_hooks.h"

namespace peakbench {
namespace {

template <typename T>
const T& get(const Options::Value& value, const std::string& name, const char* type) {
  if (const T* held = std::get_if<T>(&value)) return *held;
  throw std::logic_error("option '" + name + "' is read as " + type +
                         ", which is not its type in the manifest");
}

}  // namespace

const Options::Value& Options::at(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw std::logic_error("option '" + name + "' is read but the manifest does not declare it");
  }
  read_->insert(name);
  return found->second;
}

bool Options::boolean(const std::string& name) const {
  return get<bool>(at(name), name, "a boolean");
}

std::int64_t Options::integer(const std::string& name) const {
  return get<std::int64_t>(at(name), name, "an integer");
}

double Options::number(const std::string& name) const {
  const Value& value = at(name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return get<double>(value, name, "a number");
}

const std::string& Options::string(const std::string& name) const {
  return get<std::string>(at(name), name, "a string");
}

namespace {

bool belongs_to(const GradientGroup& group, const at::Tensor& parameter) {
  const at::Tensor& first = group.parameters.front();
  return first.device() == parameter.device() && first.scalar_type() == parameter.scalar_type();
}

}  // namespace

std::vector<GradientGroup> gradient_groups(const std::vector<Parameter>& parameters,
                                           KernelGrouping grouping) {
  std::vector<GradientGroup> groups;
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.grad().defined()) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const GradientGroup& one) {
      return grouping == KernelGrouping::kSingle || belongs_to(one, parameter);
    });
    if (group == groups.end()) group = groups.emplace(groups.end());
    group->parameters.push_back(parameter);
    group->gradients.push_back(parameter.grad());
  }
  return groups;
}

at::Tensor empty_on_host(const at::Tensor& tensor) {
  return at::empty_like(tensor, at::TensorOptions(at::kCPU).pinned_memory(!tensor.is_cpu()));
}

at::Tensor copy_on_host(const at::Tensor& tensor) {
  at::Tensor host = empty_on_host(tensor.detach());
  return host.copy_(tensor.detach());
}

namespace {
Observer* the_observer = nullptr;  // set once by the worker before any model exists
ModuleObserver* the_module_observer = nullptr;
}  // namespace

Observer* observer() { return the_observer; }

void set_observer(Observer* observer) {
  the_observer = observer;
  the_module_observer = observer;
}

ModuleObserver* module_observer() { return the_module_observer; }

void set_module_observer(ModuleObserver* observer) { the_module_observer = observer; }

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

namespace {
DeviceGraphMaker the_graph_maker = nullptr;  // set once by the device before any strategy exists
std::atomic<std::int64_t> restored{0};
}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph() {
  return the_graph_maker == nullptr ? nullptr : the_graph_maker();
}

void set_device_graph_maker(DeviceGraphMaker maker) { the_graph_maker = maker; }

void random_state_restored() { ++restored; }

std::int64_t random_states_restored() { return restored; }

}  // namespace peakbench
