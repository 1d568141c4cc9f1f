// A plan's devices, as they are to be had on this machine.
#pragma once

#include <string>

#include "manifest/worker.h"
#include "plan/device.h"

namespace peakbench::inventory {

// Where none was named.
inline constexpr const char* kDefaultCard = "h100-80gb";

// `auto` is every card; where there is none, the emulated `card` for memory and the CPU for
// throughput. The hook throws ConfigError for a card that this machine does not have or cannot
// emulate, or that the LibTorch of `worker` cannot use.
plan::DeviceHook device_hook(const std::string& card, const manifest::Worker& worker);

// For cases that run on other machines: real cards are theirs, and not looked for here. Throws
// ConfigError for `auto`, which is decided by the cards that there are.
plan::DeviceHook device_hook_for_others(const manifest::Worker& worker);

}  // namespace peakbench::inventory
