#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "recording/device.h"

namespace peakbench::recording {

// What a real card does while it is measured, as its driver says.

// driver_version, sm_clock_mhz, memory_clock_mhz, power_state ("P0" is the fastest),
// power_limit_watts, temperature_celsius of CUDA's card `index`; without what the driver does not
// say. By NVML, which every driver brings.
nlohmann::json card_state(int index);

// What influences a CUDA case's bytes and is chosen explicitly: recorded as it is in force, never
// left to chance.

// Before LibTorch's CUDA half is used: puts the allocator's settings into the environment, which is
// where PyTorch reads them, and sets cuDNN, TF32 and deterministic algorithms. `options`: cudnn,
// tf32, deterministic (booleans). Absent or empty: PyTorch's own.
void apply_cuda_settings(const nlohmann::json& options, const std::string& allocator);

// Once CUDA is initialised: throws TraceError where PyTorch has read other settings.
void check_allocator(const std::string& allocator);

nlohmann::json cuda_settings_in_force();

// Which memory the handles of the vendor's libraries hold.

// Calls `visit` for each workspace that PyTorch gave to a handle of cuBLAS or cuBLASLt and keeps
// for it. Where this LibTorch keeps none (2.15 takes one for each call) there are none to visit.
void visit_kept_workspaces(const Tracing::VisitWorkspace& visit);

}  // namespace peakbench::recording
