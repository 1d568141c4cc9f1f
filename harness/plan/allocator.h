// Settings of the caching allocator of PyTorch's CUDA half, as people type them, in one form.
#pragma once

#include <string>
#include <vector>

namespace peakbench::plan {

// As PYTORCH_CUDA_ALLOC_CONF has them, `KEY:VALUE,KEY:VALUE`, or with `=` and on/off; empty or
// `default`: PyTorch's own. Returned as PyTorch reads it, keys in order and none that says what is
// so anyway: "expandable_segments:True,max_split_size_mb:128". Throws ConfigError: an unknown key
// with the nearest one, a value out of PyTorch's range, a key that Peakbench does not take with the
// reason.
std::string normal_allocator(const std::string& text);

// The keys that a suite's `device_options` takes for all of its cases.
bool is_allocator_key(const std::string& name);

}  // namespace peakbench::plan
