// The names of devices. Whether one is there is not asked here.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace peakbench::plan {

// cpu, cuda:N (`cuda` is cuda:0), emulated:CARD[,memory=SIZE][,count=N], auto: in one form. Throws
// ConfigError with the nearest name.
std::string normal_device(const std::string& text);

// Whether that is a device's name, or `auto`.
bool is_device(const std::string& id);

// A setting of a CUDA device for `device_options`, typed: cudnn, tf32, deterministic (on or off).
// Throws ConfigError with the nearest name, or what was expected.
nlohmann::json device_option_value(const std::string& name, const std::string& text);

// From a normal device to those that it stands for (`auto`: those of this machine), or ConfigError
// for one that cannot be had. Is also asked about what is no device's name, to refuse it knowing
// the cards there are. Without one, `auto` is `cpu` and the others stand for themselves.
using DeviceHook = std::function<std::vector<std::string>(const std::string& device)>;

}  // namespace peakbench::plan
