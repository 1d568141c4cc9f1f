#include "device/cuda/cuda_settings.h"

#include <ATen/Context.h>
#include <c10/core/AllocatorConfig.h>

#include <cstdlib>

#include "errors/errors.h"
#include "result/torch_variables.h"

namespace peakbench::device {

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
  const auto read = c10::CachingAllocator::getAllocatorSettings();
  if (read == allocator) return;
  throw TraceError("the CUDA allocator has the settings \"" + read + "\" and not \"" + allocator +
                   "\": something in this process used it before they were set");
}

nlohmann::json cuda_settings_in_force() {
  const at::Context& context = at::globalContext();
  return {{"allocator", c10::CachingAllocator::getAllocatorSettings()},
          {"cudnn", context.userEnabledCuDNN()},
          {"tf32_cublas", context.allowTF32CuBLAS()},
          {"tf32_cudnn", context.allowTF32CuDNN()},
          {"deterministic", context.deterministicAlgorithms()}};
}

}  // namespace peakbench::device
