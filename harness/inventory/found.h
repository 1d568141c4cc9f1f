// The devices that this machine has, and those that it can stand in for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/context_memory.h"

namespace peakbench::inventory {

struct DeviceFound {
  std::string id;     // cpu, cuda:0, emulated:h100-80gb
  std::string title;  // for people
  // Of an emulated card.
  std::uint64_t memory_bytes = 0;
  std::string compute_capability = {};            // "8.6"
  std::string refused = {};                       // why this LibTorch has no code for it
  emulator::ContextMemories context_memory = {};  // measured on such cards
};

std::vector<DeviceFound> devices_of_this_machine();

// The cards that can be emulated here. Empty where the stand-ins are not installed.
std::vector<DeviceFound> emulated_devices();

}  // namespace peakbench::inventory
