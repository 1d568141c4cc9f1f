// What the LibTorch that a worker loads means for devices.
#pragma once

#include <optional>
#include <string>

#include "host/installation.h"
#include "manifest/worker.h"
#include "pytorch/torch_in_use.h"
#include "result/device.h"

namespace peakbench::launch {

// Nullopt: the one that this program was built with, whose facts the emulator's installation has.
std::optional<pytorch::TorchInUse> torch_of(const manifest::Worker& worker);

// The stand-ins as it meets them. Throws ConfigError where they are not installed.
emulator::Installation installation_for(const manifest::Worker& worker);

// Why no case runs on a device with it, though the device may be there; empty where one can.
std::string why_not_with(const manifest::Worker& worker, const result::Device& device);

}  // namespace peakbench::launch
