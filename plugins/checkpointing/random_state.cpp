#include "random_state.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <mutex>

#include "peakbench/device_graph.h"

namespace peakbench::checkpointing {
namespace {

at::Tensor state_of(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

}  // namespace

RandomState RandomState::of(const std::vector<at::Device>& devices) {
  RandomState state;
  state.states_.emplace_back(at::kCPU, state_of(at::kCPU));
  for (const at::Device device : devices) state.states_.emplace_back(device, state_of(device));
  return state;
}

void RandomState::restore() const {
  for (const auto& [device, state] : states_) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }
  random_state_restored();
}

}  // namespace peakbench::checkpointing
