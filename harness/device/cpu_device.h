// The CPU as a device: in every worker.
#pragma once

#include "device/module.h"

namespace peakbench::device {

const DeviceModule& cpu_module();

}  // namespace peakbench::device
