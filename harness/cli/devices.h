// The devices that this machine has.
#pragma once

#include <string>
#include <vector>

#include "plan/device.h"

namespace peakbench::cli {

struct DeviceFound {
  std::string id;     // cpu, cuda:0
  std::string title;  // for people
};

std::vector<DeviceFound> devices_of_this_machine();

// What a device as typed stands for here: `auto` is every card, or the CPU where there is none.
// The hook throws ConfigError for a card that this machine does not have.
plan::DeviceHook device_hook();

}  // namespace peakbench::cli
