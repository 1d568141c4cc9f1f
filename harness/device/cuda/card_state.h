// What a real card does while it is measured, as its driver says.
#pragma once

#include <nlohmann/json.hpp>

namespace peakbench::device {

// driver_version, sm_clock_mhz, memory_clock_mhz, power_state ("P0" is the fastest),
// power_limit_watts, temperature_celsius of CUDA's card `index`; without what the driver does not
// say. By NVML, which every driver brings.
nlohmann::json card_state(int index);

}  // namespace peakbench::device
