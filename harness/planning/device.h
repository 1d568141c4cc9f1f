#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace peakbench::planning {

// The names of devices. Whether one is there is not asked here.

// cpu, cuda:N (`cuda` is cuda:0), emulated:CARD[,memory=SIZE][,count=N], auto: in one form. Throws
// ConfigError with the nearest name.
std::string normal_device(const std::string& text);

// Whether that is a device's name, or `auto`.
bool is_device(const std::string& id);

// A setting of a CUDA device for `device_options`, typed: cudnn, tf32, deterministic (on or off).
// Throws ConfigError with the nearest name, or what was expected.
nlohmann::json device_option_value(const std::string& name, const std::string& text);

// Replaces a normal device by the real ones (`auto`: those of this machine), or throws ConfigError
// for one that is not available. Also called with unknown device names, to refuse them with the
// list of cards. Without a hook, `auto` is `cpu`, and others stay as they are.
using DeviceHook = std::function<std::vector<std::string>(const std::string& device)>;

// Settings of the caching allocator of PyTorch's CUDA half, normalized.

// As PYTORCH_CUDA_ALLOC_CONF has them, `KEY:VALUE,KEY:VALUE`, or with `=` and on/off; empty or
// `default`: PyTorch's own. Returned as PyTorch reads it, keys in order and none that says what is
// so anyway: "expandable_segments:True,max_split_size_mb:128". Throws ConfigError: an unknown key
// with the nearest one, a value out of PyTorch's range, a key that Peakbench does not take with the
// reason.
std::string normal_allocator(const std::string& text);

// The keys that a suite's `device_options` takes for all of its cases.
bool is_allocator_key(const std::string& name);

}  // namespace peakbench::planning
