#include "device/cuda/cuda_settings.h"

#include <ATen/Context.h>

#include <cstdlib>

namespace peakbench::device {
namespace {

constexpr const char* kAllocatorVariable = "PYTORCH_CUDA_ALLOC_CONF";
constexpr const char* kAllocatorOptions[] = {"expandable_segments", "max_split_size_mb",
                                             "garbage_collection_threshold",
                                             "roundup_power2_divisions"};

std::string text_of(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string allocator_configuration(const nlohmann::json& options) {
  std::string text;
  for (const char* name : kAllocatorOptions) {
    if (options.contains(name))
      text += (text.empty() ? "" : ",") + std::string(name) + ":" + text_of(options[name]);
  }
  return text;
}

}  // namespace

void apply_cuda_settings(const nlohmann::json& options) {
  const std::string configuration = allocator_configuration(options);
  if (configuration.empty()) {
    ::unsetenv(kAllocatorVariable);  // what happens to be set in a shell is no part of the case
  } else {
    ::setenv(kAllocatorVariable, configuration.c_str(), 1);
  }
  at::Context& context = at::globalContext();
  if (options.contains("cudnn")) context.setUserEnabledCuDNN(options["cudnn"].get<bool>());
  if (options.contains("tf32")) {
    context.setAllowTF32CuBLAS(options["tf32"].get<bool>());
    context.setAllowTF32CuDNN(options["tf32"].get<bool>());
  }
  if (options.contains("deterministic")) {
    context.setDeterministicAlgorithms(options["deterministic"].get<bool>(), /*warn_only=*/false);
  }
}

nlohmann::json cuda_settings_in_force() {
  const at::Context& context = at::globalContext();
  const char* allocator = std::getenv(kAllocatorVariable);
  return {{"allocator", allocator != nullptr ? allocator : ""},
          {"cudnn", context.userEnabledCuDNN()},
          {"tf32_cublas", context.allowTF32CuBLAS()},
          {"tf32_cudnn", context.allowTF32CuDNN()},
          {"deterministic", context.deterministicAlgorithms()}};
}

}  // namespace peakbench::device
