// The devices that this machine has, and those that it can stand in for.
#pragma once

#include <string>
#include <vector>

#include "host/context_memory.h"

namespace peakbench::inventory {

struct DeviceFound {
  std::string id;                                 // cpu, cuda:0, emulated:h100-80gb
  std::string title;                              // for people
  bool served = true;                             // an emulated card: this LibTorch has code for it
  emulator::ContextMemories context_memory = {};  // of an emulated card, measured on such ones
};

std::vector<DeviceFound> devices_of_this_machine();

// The cards that can be emulated here. Empty where the stand-ins are not installed.
std::vector<DeviceFound> emulated_devices();

}  // namespace peakbench::inventory
