// NVIDIA's driver, as it says of itself.
#pragma once

#include <string>

namespace peakbench::inventory {

// Both empty where there is none.
struct DriverFound {
  std::string version;  // 580.65.06
  std::string problem;  // why the LibTorch in use cannot use it, and what to do
};

// `version_line`: the first line of /proc/driver/nvidia/version; `libtorch_cuda`: 13.0.
DriverFound driver_for(const std::string& version_line, const std::string& libtorch_cuda);
DriverFound driver_of_this_machine(const std::string& libtorch_cuda);

}  // namespace peakbench::inventory
