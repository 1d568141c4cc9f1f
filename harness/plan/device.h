// The names of devices. Whether one is there is not asked here.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace peakbench::plan {

// cpu, cuda:N (`cuda` is cuda:0), emulated:CARD[,memory=SIZE][,count=N], auto: in one form. Throws
// ConfigError with the nearest name.
std::string normal_device(const std::string& text);

// Settings of a CUDA device, for `device_options`: the libraries' and the caching allocator's.
// Throws ConfigError with the nearest name.
void check_device_option(const std::string& name);

// From a normal device to those that it stands for (`auto`: those of this machine), or ConfigError
// for one that cannot be had. Without one, `auto` is `cpu` and the others stand for themselves.
using DeviceHook = std::function<std::vector<std::string>(const std::string& device)>;

}  // namespace peakbench::plan
