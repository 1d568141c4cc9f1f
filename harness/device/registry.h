// From a case's device to what it runs on.
#pragma once

#include <memory>
#include <string>

#include "device/module.h"

namespace peakbench::device {

// By the module of the device's kind: built in, or `module_path()`.
// Throws ConfigError where there is none, where it is of another build, or where this machine has
// no such device; HostError where the machine refuses to open it. Modules stay open for the life of
// the process.
std::unique_ptr<Device> make_device(const DeviceRequest& request);

// Beside the program: ../lib/peakbench/libpeakbench_NAME.so.
std::string module_path(const std::string& name);

// The module of the device's kind, for `make_device`; throws as that does.
const DeviceModule& open_module(const std::string& path, const result::Device& device);

}  // namespace peakbench::device
