// The environment variables that PyTorch's CUDA allocator reads. What happens to be set in a shell
// is no part of a case, whose settings are Setting::allocator.
#pragma once

#include <array>
#include <cstdlib>

namespace peakbench::result {

// That a worker sets for a case that has settings. PyTorch reads the others too, and some before
// this one.
inline constexpr const char* kAllocatorVariable = "PYTORCH_CUDA_ALLOC_CONF";

inline constexpr std::array kAllocatorVariables{"PYTORCH_ALLOC_CONF", kAllocatorVariable,
                                                "PYTORCH_HIP_ALLOC_CONF",
                                                "PYTORCH_NO_CUDA_MEMORY_CACHING"};

// Before LibTorch's CUDA half is loaded: it chooses the allocator (`backend`) while it is.
inline void forget_inherited_allocator() {
  for (const char* name : kAllocatorVariables) ::unsetenv(name);
}

}  // namespace peakbench::result
