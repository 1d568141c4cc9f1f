// What the environment of a worker must hold for its device, decided before the process starts.
#pragma once

#include <string>

#include "process/process.h"
#include "result/device.h"

namespace peakbench::launch {

// How an emulated card is to be.
struct Emulated {
  bool limited = true;  // false: with more memory than any case takes. What would it have needed?
  bool values = false;  // small tensors have values, for what the host reads of them
  std::string assume = {};  // plan::Request
};

// Variables to add: none for the CPU and real cards. An emulated card's stand-in libraries must be
// there before LibTorch is loaded, so they come from here. Throws ConfigError for an emulated card
// that is unknown (the nearest named), has no sensible memory, or that this LibTorch has no code
// for.
process::Environment environment_for(const result::Device& device, const Emulated& how = {});

}  // namespace peakbench::launch
