// Kernel launches: checked as the runtime checks them, counted, not run.
#include <algorithm>
#include <vector>

#include "runtime/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

constexpr int kTypicalRegisters = 32;

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

cudaError_t launch(const dim3& grid, const dim3& block, size_t shared_bytes, cudaStream_t stream) {
  return working_entry([&] {
    if (!fits(grid, block, shared_bytes)) return cudaErrorInvalidConfiguration;
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    count_launch(number(stream));
    return cudaSuccess;
  });
}

// Without the kernel's register use: what threads, blocks and shared memory allow.
int occupancy(int block_size, size_t dynamic_shared_bytes) {
  const CardFacts& facts = card();
  int blocks = facts.max_threads_per_multiprocessor / std::max(block_size, 1);
  blocks = std::min(blocks, facts.max_blocks_per_multiprocessor);
  if (dynamic_shared_bytes) {
    blocks = static_cast<int>(std::min<std::uint64_t>(
        blocks, facts.shared_memory_per_multiprocessor_bytes / dynamic_shared_bytes));
  }
  return std::max(blocks, 1);
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
  return launch(grid, block, shared_bytes, stream);
}

PEAKBENCH_ENTRY cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3 block, void**,
                                             size_t shared_bytes, cudaStream_t stream) {
  return launch(grid, block, shared_bytes, stream);
}

PEAKBENCH_ENTRY cudaError_t cudaLaunchCooperativeKernel(const void*, dim3 grid, dim3 block, void**,
                                                        size_t shared_bytes, cudaStream_t stream) {
  return launch(grid, block, shared_bytes, stream);
}

PEAKBENCH_ENTRY cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*,
                                                void**) {
  return launch(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
}

// A function on the host that a stream calls when it gets there: it is there.
PEAKBENCH_ENTRY cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                                               void* data) {
  return entry([&] {
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    if (!capture_of(number(stream))) function(data);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                                  cudaStreamCallback_t callback, void* data,
                                                  unsigned) {
  return entry([&] {
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void*) {
  return entry([&] {
    *out = {};
    out->maxThreadsPerBlock = kMaxThreadsPerBlock;
    out->numRegs = kTypicalRegisters;
    // cub chooses its tuning by these: the code in this LibTorch that the card would run.
    out->ptxVersion = out->binaryVersion = card().binary_arch;
    out->maxDynamicSharedSizeBytes = static_cast<int>(card().shared_memory_per_block_bytes);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute,
                                                 int value) {
  return entry([&] {
    const bool too_much =
        attribute == cudaFuncAttributeMaxDynamicSharedMemorySize &&
        value > static_cast<long long>(card().shared_memory_per_block_optin_bytes);
    return too_much ? cudaErrorInvalidValue : cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) {
  return entry([] { return cudaSuccess; });
}

PEAKBENCH_ENTRY cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* out, const void*, int block_size, size_t shared_bytes, unsigned) {
  return entry([&] {
    unmodelled("occupancy: register use of kernels");
    *out = occupancy(block_size, shared_bytes);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out,
                                                                          const void* function,
                                                                          int block_size,
                                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, block_size,
                                                                shared_bytes, 0);
}
