// A device module that the registry must refuse, for the reason that its build plants.
#include "recording/device.h"

namespace {

using namespace peakbench::recording;

std::unique_ptr<Device> make(const DeviceRequest&) { return nullptr; }

}  // namespace

extern "C" __attribute__((visibility("default"))) const DeviceModule peakbench_device_module;
const DeviceModule peakbench_device_module = {PEAKBENCH_PLANTED_REVISION, PEAKBENCH_PLANTED_BUILD,
                                              PEAKBENCH_PLANTED_NAME, make};
