#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/host/context_memory.h"
#include "planning/device.h"
#include "planning/worker.h"

namespace peakbench::launch {

// NVIDIA's driver, as it says of itself.

// Both are empty if there is no driver.
struct DriverFound {
  std::string version;  // 580.65.06
  std::string problem;  // why the LibTorch in use cannot use it, and what to do
};

// `version_line`: the first line of /proc/driver/nvidia/version; `libtorch_cuda`: 13.0.
DriverFound driver_for(const std::string& version_line, const std::string& libtorch_cuda);
DriverFound driver_of_this_machine(const std::string& libtorch_cuda);

// The devices of this machine, and those that it can emulate.

struct DeviceFound {
  std::string id;     // cpu, cuda:0, emulated:h100-80gb
  std::string title;  // its display name
  // Of an emulated card.
  std::uint64_t memory_bytes = 0;
  std::string compute_capability = {};            // "8.6"
  std::string refused = {};                       // why this LibTorch has no code for it
  emulator::ContextMemories context_memory = {};  // measured on such cards
};

std::vector<DeviceFound> devices_of_this_machine();

// Cards that can be emulated here. Empty if the stub libraries are not installed.
std::vector<DeviceFound> emulated_devices();

// A plan's devices, as they are to be had on this machine.

// Where none was named.
inline constexpr const char* kDefaultCard = "h100-80gb";

// `auto` is every card; without one, the emulated `card` for memory and the CPU for throughput. The
// hook throws ConfigError for a card that this machine does not have or cannot emulate, or that the
// LibTorch of `worker` cannot use.
planning::DeviceHook device_hook(const std::string& card, const planning::Worker& worker);

// For cases that run on other machines: real cards are theirs, and not looked for here. Throws
// ConfigError for `auto`, which is decided by the cards that there are.
planning::DeviceHook device_hook_for_others(const planning::Worker& worker);

}  // namespace peakbench::launch
