// Kernel launches through the driver: checked as the driver checks them, counted, not run. Triton
// launches with cuLaunchKernelEx; its driver utilities and PyTorch's ask for occupancies.
#include <algorithm>
#include <cstring>

#include "core/kernels.h"
#include "driver/errors.h"
#include "driver/functions.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::driver;

namespace {

constexpr unsigned kPortableClusterSize = 8, kLargestClusterSize = 16;

// A table of pointers may lie in memory of the host that kernels read.
constexpr std::uint64_t kLargestTable = 64 << 10;

void add_tables(std::vector<std::uint64_t>& words) {
  const auto count = words.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto* at = reinterpret_cast<const char*>(words[i]);
    const auto place = find_place(at);
    if (place.kind != MemoryKind::pinned && place.kind != MemoryKind::managed) continue;
    const auto bytes = std::min(place.base + place.bytes - words[i], kLargestTable);
    for (std::uint64_t done = 0; done + sizeof(std::uint64_t) <= bytes; done += sizeof done) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + done, sizeof word);
      if (word) words.push_back(word);
    }
  }
}

// With `arguments` as the driver takes them: an address each.
CUresult launched(CUfunction function, void* const* arguments, CUstream stream,
                  std::uint64_t threads, unsigned shared_bytes, const void* caller) {
  return entry([&] {
    if (is_stopped(current_device())) return CUDA_ERROR_ASSERT;
    if (!threads || threads > kMaxThreadsPerBlock) return CUDA_ERROR_INVALID_VALUE;
    if (shared_bytes > card().shared_memory_per_block_optin_bytes) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_exists(number(stream))) return CUDA_ERROR_INVALID_HANDLE;
    const auto called = arguments ? function_of(function) : std::nullopt;
    if (!called || !called->facts) {
      count_launch(number(stream), kPeakbenchLoadedAtRunTime, caller);
      return CUDA_SUCCESS;
    }
    auto words = words_of(called->facts->parameters, arguments);
    add_tables(words);
    count_launch(number(stream), kPeakbenchLoadedAtRunTime, caller, words);
    return CUDA_SUCCESS;
  });
}

std::uint64_t threads_of(const CUlaunchConfig& config) {
  return std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
}

// Blocks of a cluster, 1 without one.
unsigned cluster_size(const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = attribute.value.clusterDim;
    return size.x * size.y * size.z;
  }
  return 1;
}

int blocks_of(CUfunction function, std::uint64_t threads, std::uint64_t shared_bytes) {
  const auto called = function_of(function).value_or(Function{});
  if (!called.facts || !called.facts->registers) enter(Fact::unknown_kernel);
  return blocks_per_multiprocessor(card(), called.facts.value_or(KernelFacts{}), called.settings,
                                   {static_cast<int>(threads), shared_bytes});
}

}  // namespace

PEAKBENCH_ENTRY CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned,
                                        unsigned x, unsigned y, unsigned z, unsigned shared_bytes,
                                        CUstream stream, void** arguments, void**) {
  return launched(function, arguments, stream, std::uint64_t{x} * y * z, shared_bytes,
                  __builtin_return_address(0));
}

PEAKBENCH_ENTRY CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned, unsigned,
                                                   unsigned, unsigned x, unsigned y, unsigned z,
                                                   unsigned shared_bytes, CUstream stream,
                                                   void** arguments) {
  return launched(function, arguments, stream, std::uint64_t{x} * y * z, shared_bytes,
                  __builtin_return_address(0));
}

PEAKBENCH_ENTRY CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                          void** arguments, void**) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  if (cluster_size(*config) > 1 && card().major < 9) return CUDA_ERROR_INVALID_VALUE;
  return launched(function, arguments, config->hStream, threads_of(*config), config->sharedMemBytes,
                  __builtin_return_address(0));
}

// A function of the host that a stream calls when it gets there: it is there.
PEAKBENCH_ENTRY CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return entry([&] {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_exists(number(stream))) return CUDA_ERROR_INVALID_HANDLE;
    if (!capture_of(number(stream))) function(data);
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* out, CUfunction function, int block_size, size_t shared_bytes, unsigned) {
  return entry([&] {
    if (!out || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *out = blocks_of(function, block_size, shared_bytes);
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction function,
                                                                     int block_size,
                                                                     size_t shared_bytes) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, block_size,
                                                              shared_bytes, 0);
}

// A cluster's blocks run at the same time, each in its multiprocessor. Which multiprocessors make
// up a group that a cluster can span is not known here.
PEAKBENCH_ENTRY CUresult cuOccupancyMaxActiveClusters(int* out, CUfunction function,
                                                      const CUlaunchConfig* config) {
  return entry([&] {
    if (!out || !config || card().major < 9) return CUDA_ERROR_INVALID_VALUE;
    const auto size = cluster_size(*config);
    if (!size || size > kLargestClusterSize) return CUDA_ERROR_INVALID_VALUE;
    const auto blocks = blocks_of(function, threads_of(*config), config->sharedMemBytes);
    *out = blocks * card().multiprocessor_count / static_cast<int>(size);
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuOccupancyMaxPotentialClusterSize(int* out, CUfunction,
                                                            const CUlaunchConfig* config) {
  return entry([&] {
    if (!out || !config || card().major < 9) return CUDA_ERROR_INVALID_VALUE;
    *out = kPortableClusterSize;
    return CUDA_SUCCESS;
  });
}
