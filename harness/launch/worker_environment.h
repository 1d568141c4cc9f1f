#pragma once

#include <string>

#include "emulator/host/installation.h"
#include "host/process.h"
#include "planning/worker.h"
#include "records/device.h"

namespace peakbench::launch {

// What the LibTorch that a worker loads means for devices.

// The stub libraries for this worker. Throws ConfigError if they are not installed.
emulator::Installation installation_for(const planning::Worker& worker);

// Why no case runs on a device with it, though the device may be there; empty where one can.
std::string why_not_with(const planning::Worker& worker, const records::Device& device);

// What the environment of a worker must hold for its device, decided before the process starts.

// How an emulated card is to be.
struct Emulated {
  bool limited = true;  // false: with more memory than any case takes. What would it have needed?
  bool values = false;  // small tensors have values, for what the host reads of them
  std::string assume = {};  // planning::Request
};

// Variables for a worker on this device: the folder of its LibTorch, if it would not find that by
// itself. For the CPU and real cards there are no others. An emulated card's stub libraries must be
// loaded before LibTorch, so their variables are here, too. Throws ConfigError for an emulated card
// that is unknown (names the nearest), has an invalid memory size, or is not supported by this
// LibTorch.
process::Environment environment_for(const records::Device& device, const planning::Worker& worker,
                                     const Emulated& how = {});

}  // namespace peakbench::launch
