// What influences a CUDA case's bytes and is chosen explicitly: recorded as it is in force, never
// left to chance.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace peakbench::device {

// Before LibTorch's CUDA half is used: puts the allocator's settings into the environment, which is
// where PyTorch reads them, and sets cuDNN, TF32 and deterministic algorithms. `options`: cudnn,
// tf32, deterministic (booleans). Absent or empty: PyTorch's own.
void apply_cuda_settings(const nlohmann::json& options, const std::string& allocator);

// Once CUDA is initialised: throws TraceError where PyTorch has read other settings.
void check_allocator(const std::string& allocator);

nlohmann::json cuda_settings_in_force();

}  // namespace peakbench::device
