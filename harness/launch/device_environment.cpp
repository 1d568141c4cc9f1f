#include "launch/device_environment.h"

namespace peakbench::launch {

Environment environment_for(const std::string& device) {
  (void)device;
  return {};
}

bool is_emulated(const std::string& device) { return device.rfind("emulated:", 0) == 0; }

}  // namespace peakbench::launch
