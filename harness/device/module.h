// What makes the devices of a kind: the CPU's is part of the worker; any other is a shared library
// that the worker opens where a case needs it, so that it alone links what the kind needs.
//
//   std::unique_ptr<Device> make(const DeviceRequest& request) { ... }
//   PEAKBENCH_DEVICE_MODULE("cuda", make)
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "device/build_stamp.h"
#include "device/device.h"
#include "result/device.h"

namespace peakbench::device {

// Of the classes in device.h and the records in their functions; compared exactly.
inline constexpr int kDeviceRevision = 4;

struct DeviceRequest {
  result::Device device;
  nlohmann::json options = nlohmann::json::object();  // cudnn, tf32, ...
  std::string allocator;                // settings of the caching allocator; empty: PyTorch's own
  std::int64_t memory_limit_bytes = 0;  // of the CPU's allocator; 0: none
};

struct DeviceModule {
  // First, and read first: the rest is what it says only where these two are ours.
  int revision = kDeviceRevision;
  const char* build = kBuildStamp;
  const char* name = "";  // result::DeviceFacts::module of the kinds that it makes
  // Throws ConfigError where this machine has no such device.
  std::unique_ptr<Device> (*make)(const DeviceRequest& request) = nullptr;
};

}  // namespace peakbench::device

#define PEAKBENCH_DEVICE_MODULE(name, make)                         \
  extern "C" __attribute__((visibility("default")))                 \
  const peakbench::device::DeviceModule peakbench_device_module;    \
  const peakbench::device::DeviceModule peakbench_device_module = { \
      peakbench::device::kDeviceRevision, peakbench::device::kBuildStamp, name, make};
