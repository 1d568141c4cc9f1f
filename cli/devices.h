// The devices that this machine has.
#pragma once

#include <string>
#include <vector>

#include "plan/device.h"

namespace peakbench::cli {

struct DeviceFound {
  std::string id;      // cpu, cuda:0
  std::string title;   // for people
  bool served = true;  // an emulated card: this LibTorch has code for it
};

std::vector<DeviceFound> devices_of_this_machine();

// NVIDIA's driver, as it says of itself; both empty where there is none.
struct DriverFound {
  std::string version;  // 580.65.06
  std::string problem;  // why the LibTorch in use cannot use it, and what to do
};
// `version_line`: the first line of /proc/driver/nvidia/version; `libtorch_cuda`: 13.0.
DriverFound driver_for(const std::string& version_line, const std::string& libtorch_cuda);
DriverFound driver_of_this_machine(const std::string& libtorch_cuda);

// The cards that can be emulated here: emulated:h100-80gb, ... Empty where the stand-ins are not
// installed.
std::vector<DeviceFound> emulated_devices();

// What a device as typed stands for here: `auto` is every card; where there is none, the emulated
// `card` for memory and the CPU for throughput. The hook throws ConfigError for a card that this
// machine does not have or cannot emulate.
plan::DeviceHook device_hook(const std::string& card);

}  // namespace peakbench::cli
