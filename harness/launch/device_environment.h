// What the environment of a worker must hold for its device, decided before the process starts.
#pragma once

#include <string>

#include "manifest/worker.h"
#include "process/process.h"
#include "result/device.h"

namespace peakbench::launch {

// How an emulated card is to be.
struct Emulated {
  bool limited = true;  // false: with more memory than any case takes. What would it have needed?
  bool values = false;  // small tensors have values, for what the host reads of them
  std::string assume = {};  // plan::Request
};

// Variables to add, for the worker that runs there: where the LibTorch is that it is to load, if it
// would not find that by itself; no others for the CPU and real cards. An emulated card's stand-in
// libraries must be there before LibTorch is loaded, so they come from here. Throws ConfigError for
// an emulated card that is unknown (the nearest named), has no sensible memory, or that this
// LibTorch has no code for.
process::Environment environment_for(const result::Device& device, const manifest::Worker& worker,
                                     const Emulated& how = {});

}  // namespace peakbench::launch
