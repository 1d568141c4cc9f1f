// The environment variables by which PyTorch's CUDA half and the libraries below it choose memory,
// kernels or precision. What happens to be set in a shell is no part of a case: its settings are
// Setting::allocator and the device's options.
#pragma once

#include <array>
#include <cstdlib>

namespace peakbench::records {

// That a worker sets for a case that has settings. PyTorch reads the others too, and some before
// this one.
inline constexpr const char* kAllocatorVariable = "PYTORCH_CUDA_ALLOC_CONF";

inline constexpr std::array kAllocatorVariables{"PYTORCH_ALLOC_CONF", kAllocatorVariable,
                                                "PYTORCH_HIP_ALLOC_CONF",
                                                "PYTORCH_NO_CUDA_MEMORY_CACHING"};

// That a worker sets for a case with deterministic algorithms, which cuBLAS has with two of its
// workspaces: PyTorch refuses any other.
inline constexpr const char* kCublasWorkspaceVariable = "CUBLAS_WORKSPACE_CONFIG";
inline constexpr const char* kDeterministicWorkspace = ":4096:8";

inline constexpr std::array kLibraryVariables{kCublasWorkspaceVariable,
                                              "CUBLASLT_WORKSPACE_SIZE",
                                              "DISABLE_ADDMM_CUDA_LT",
                                              "NVIDIA_TF32_OVERRIDE",
                                              "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
                                              "TORCH_BLAS_PREFER_CUBLASLT",
                                              "TORCH_CUBLASLT_UNIFIED_WORKSPACE",
                                              "TORCH_CUDNN_SDPA_DEPRIORITIZED",
                                              "TORCH_CUDNN_USE_HEURISTIC_MODE_B",
                                              "TORCH_CUDNN_V8_API_DISABLED",
                                              "TORCH_LINALG_PREFER_CUSOLVER",
                                              "TORCH_LINEAR_FLATTEN_3D"};

// Before LibTorch's CUDA half is loaded: it reads some of them (the allocator's `backend`) while it
// is.
inline void forget_inherited_settings() {
  for (const char* name : kAllocatorVariables) ::unsetenv(name);
  for (const char* name : kLibraryVariables) ::unsetenv(name);
}

}  // namespace peakbench::records
