// Attributes of a device, answered by the runtime's stand-in: the numbers are the same in both.
#pragma once

#include <cuda.h>

namespace peakbench::emulator::driver {

CUresult device_attribute(int* out, CUdevice_attribute which, int device);

}  // namespace peakbench::emulator::driver
