#include "device/cuda/cuda_settings.h"

#include <ATen/Context.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
#include <c10/core/AllocatorConfig.h>
#else
#include <c10/cuda/CUDAAllocatorConfig.h>
#endif

#include <cstdlib>

#include "errors/errors.h"
#include "result/torch_variables.h"

namespace peakbench::device {
namespace {

std::string allocator_settings() {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
  return c10::CachingAllocator::getAllocatorSettings();
#else
  return c10::cuda::CUDACachingAllocator::CUDAAllocatorConfig::last_allocator_settings();
#endif
}

}  // namespace

void apply_cuda_settings(const nlohmann::json& options, const std::string& allocator) {
  result::forget_inherited_settings();
  if (!allocator.empty()) ::setenv(result::kAllocatorVariable, allocator.c_str(), 1);
  at::Context& context = at::globalContext();
  if (options.contains("cudnn")) context.setUserEnabledCuDNN(options["cudnn"].get<bool>());
  if (options.contains("tf32")) {
    context.setAllowTF32CuBLAS(options["tf32"].get<bool>());
    context.setAllowTF32CuDNN(options["tf32"].get<bool>());
  }
  if (options.contains("deterministic")) {
    const bool only = options["deterministic"].get<bool>();
    if (only) ::setenv(result::kCublasWorkspaceVariable, result::kDeterministicWorkspace, 1);
    context.setDeterministicAlgorithms(only, /*warn_only=*/false);
  }
}

void check_allocator(const std::string& allocator) {
  const auto read = allocator_settings();
  if (read == allocator) return;
  throw TraceError("the CUDA allocator has the settings \"" + read + "\" and not \"" + allocator +
                   "\": something in this process used it before they were set");
}

nlohmann::json cuda_settings_in_force() {
  const at::Context& context = at::globalContext();
  return {{"allocator", allocator_settings()},
          {"cudnn", context.userEnabledCuDNN()},
          {"tf32_cublas", context.allowTF32CuBLAS()},
          {"tf32_cudnn", context.allowTF32CuDNN()},
          {"deterministic", context.deterministicAlgorithms()}};
}

}  // namespace peakbench::device
