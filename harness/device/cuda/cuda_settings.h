// What influences a CUDA case's bytes and is chosen explicitly: recorded as it is in force, never
// left to chance.
#pragma once

#include <nlohmann/json.hpp>

namespace peakbench::device {

// Before LibTorch's CUDA half is used: puts allocator settings into PYTORCH_CUDA_ALLOC_CONF and
// sets cuDNN, TF32 and deterministic algorithms. `options`: cudnn, tf32, deterministic (booleans),
// expandable_segments (boolean), max_split_size_mb, roundup_power2_divisions (integers),
// garbage_collection_threshold (number). Absent: PyTorch's own.
void apply_cuda_settings(const nlohmann::json& options);
nlohmann::json cuda_settings_in_force();

}  // namespace peakbench::device
