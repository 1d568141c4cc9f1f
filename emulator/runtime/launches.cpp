// Kernel launches: checked as the runtime checks them, counted, not run.
#include <algorithm>
#include <vector>

#include "runtime/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// `kernel<<<...>>>` pushes, the kernel's host side pops.
thread_local std::vector<Configuration> pushed;

bool fits(const dim3& grid, const dim3& block, size_t shared_bytes) {
  if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z) return false;
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return false;
  if (1ull * block.x * block.y * block.z > kMaxThreadsPerBlock || block.z > 64) return false;
  return shared_bytes <= card().shared_memory_per_block_optin_bytes;
}

cudaError_t launch(const dim3& grid, const dim3& block, size_t shared_bytes, cudaStream_t stream,
                   const void* caller) {
  return working_entry([&] {
    if (!fits(grid, block, shared_bytes)) return cudaErrorInvalidConfiguration;
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    count_launch(number(stream), kPeakbenchBuiltInKernel, caller);
    return cudaSuccess;
  });
}

}  // namespace

// The prototypes of the next four are nvcc's own; no header of the runtime has them.
PEAKBENCH_ENTRY unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                                     cudaStream_t stream) {
  pushed.push_back({grid, block, shared_bytes, stream});
  return 0;
}

PEAKBENCH_ENTRY cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block,
                                                       size_t* shared_bytes, void* stream) {
  if (pushed.empty()) return finish(cudaErrorIllegalState);
  const Configuration last = pushed.back();
  pushed.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}

PEAKBENCH_ENTRY cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3 grid, dim3 block, void**,
                                               size_t shared_bytes, cudaStream_t stream) {
  return launch(grid, block, shared_bytes, stream, __builtin_return_address(0));
}

PEAKBENCH_ENTRY cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3 block, void**,
                                             size_t shared_bytes, cudaStream_t stream) {
  return launch(grid, block, shared_bytes, stream, __builtin_return_address(0));
}

PEAKBENCH_ENTRY cudaError_t cudaLaunchCooperativeKernel(const void*, dim3 grid, dim3 block, void**,
                                                        size_t shared_bytes, cudaStream_t stream) {
  return launch(grid, block, shared_bytes, stream, __builtin_return_address(0));
}

PEAKBENCH_ENTRY cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*,
                                                void**) {
  if (!config) return finish(cudaErrorInvalidValue);
  return launch(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream,
                __builtin_return_address(0));
}

// A function on the host that a stream calls when it gets there: it is there.
PEAKBENCH_ENTRY cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                                               void* data) {
  return entry([&] {
    if (!function) return cudaErrorInvalidValue;
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    if (!capture_of(number(stream))) function(data);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                                  cudaStreamCallback_t callback, void* data,
                                                  unsigned) {
  return entry([&] {
    if (!callback) return cudaErrorInvalidValue;
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
  });
}
