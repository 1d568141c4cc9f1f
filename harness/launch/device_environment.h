// What the environment of a worker must hold for its device, decided before the process starts.
#pragma once

#include <string>

#include "process/process.h"

namespace peakbench::launch {

// Variables to add for a device as a case names it: none for `cpu` and real cards. An emulated
// card's stand-in libraries must be there before LibTorch is loaded, so they come from here.
process::Environment environment_for(const std::string& device);

// The same emulated card with more memory than any case takes: what would this one have needed?
process::Environment unlimited_environment_for(const std::string& device);

// Throws ConfigError for an emulated card that is unknown (the nearest named), has no sensible
// memory, or that this LibTorch has no code for.
void check_emulated(const std::string& device);

// Emulated cards have no times: no throughput worker is ever started for them.
bool is_emulated(const std::string& device);

}  // namespace peakbench::launch
