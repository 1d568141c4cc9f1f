// A plan's devices, as they are to be had on this machine.
#pragma once

#include <string>

#include "plan/device.h"

namespace peakbench::devices {

// `auto` is every card; where there is none, the emulated `card` for memory and the CPU for
// throughput. The hook throws ConfigError for a card that this machine does not have or cannot
// emulate.
plan::DeviceHook device_hook(const std::string& card);

}  // namespace peakbench::devices
