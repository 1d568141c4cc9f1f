#include "core/kernels.h"

#include <cuda_occupancy.h>

#include <algorithm>
#include <climits>

#include "core/core.h"
#include "core/cubin.h"

namespace peakbench::emulator {
namespace {

Kernels kernels_in(const void* image) {
  if (!image || !is_fat_binary(image)) return kernels_of_cubin(image);
  const std::string code = code_for(image, card().major, card().minor);
  return code.empty() ? Kernels{} : kernels_of_cubin(code.data());
}

}  // namespace

const Kernels* read_kernels(const void* image) { return new Kernels(kernels_in(image)); }

void forget_kernels(const Kernels* kernels) { delete kernels; }

namespace {

constexpr int kRegistersPerBlock = 65536;
constexpr std::uint64_t kReservedSharedBytes = 1024;
constexpr int kRegisterUnit = 256;  // of a warp
constexpr int kPartitions = 4;      // of a multiprocessor: a block's warps are dealt out to them

cudaOccDeviceProp properties_of(const CardFacts& card) {
  cudaOccDeviceProp out;
  out.computeMajor = card.major;
  out.computeMinor = card.minor;
  out.maxThreadsPerBlock = kMaxThreadsPerBlock;
  out.maxThreadsPerMultiprocessor = card.max_threads_per_multiprocessor;
  out.regsPerBlock = kRegistersPerBlock;
  out.regsPerMultiprocessor = card.registers_per_multiprocessor;
  out.warpSize = card.warp_size;
  out.sharedMemPerBlock = card.shared_memory_per_block_bytes;
  out.sharedMemPerMultiprocessor = card.shared_memory_per_multiprocessor_bytes;
  out.numSms = card.multiprocessor_count;
  out.sharedMemPerBlockOptin = card.shared_memory_per_block_optin_bytes;
  out.reservedSharedMemPerBlock = reserved_shared_bytes(card);
  return out;
}

cudaOccFuncAttributes attributes_of(const CardFacts& card, const KernelFacts& kernel,
                                    const KernelSettings& settings) {
  cudaOccFuncAttributes out;
  out.maxThreadsPerBlock = kernel.max_threads ? kernel.max_threads : INT_MAX;
  out.numRegs = kernel.registers;
  out.sharedSizeBytes = kernel.static_shared_bytes;
  out.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  out.maxDynamicSharedSizeBytes = max_dynamic_shared_bytes(card, kernel, settings);
  out.numBlockBarriers = kernel.barriers;
  return out;
}

cudaOccDeviceState state_of(const KernelSettings& settings) {
  cudaOccDeviceState out;
  out.carveoutConfig = settings.carveout;
  return out;
}

}  // namespace

std::uint64_t reserved_shared_bytes(const CardFacts& card) {
  return card.major >= 8 ? kReservedSharedBytes : 0;
}

std::uint64_t max_dynamic_shared_bytes(const CardFacts& card, const KernelFacts& kernel,
                                       const KernelSettings& settings) {
  if (settings.max_dynamic_shared_bytes) return *settings.max_dynamic_shared_bytes;
  const auto most = card.shared_memory_per_block_bytes;
  return most - std::min<std::uint64_t>(most, kernel.static_shared_bytes);
}

bool may_set_dynamic_shared(const CardFacts& card, const KernelFacts& kernel, std::int64_t bytes) {
  const auto most = static_cast<std::int64_t>(card.shared_memory_per_block_optin_bytes);
  return bytes >= 0 && bytes + kernel.static_shared_bytes <= most;
}

int blocks_per_multiprocessor(const CardFacts& card, const KernelFacts& kernel,
                              const KernelSettings& settings, const BlockShape& block) {
  const auto properties = properties_of(card);
  const auto attributes = attributes_of(card, kernel, settings);
  const auto state = state_of(settings);
  cudaOccResult result{};
  const auto status = cudaOccMaxActiveBlocksPerMultiprocessor(
      &result, &properties, &attributes, &state, block.threads, block.dynamic_shared_bytes);
  return status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : 0;
}

int max_threads_per_block(const CardFacts& card, const KernelFacts& kernel) {
  int most =
      kernel.max_threads ? std::min(kernel.max_threads, kMaxThreadsPerBlock) : kMaxThreadsPerBlock;
  if (!kernel.registers) return most;
  const int warp =
      (kernel.registers * card.warp_size + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  const int warps = kRegistersPerBlock / warp / kPartitions * kPartitions;
  return std::min(most, warps * card.warp_size);
}

}  // namespace peakbench::emulator
