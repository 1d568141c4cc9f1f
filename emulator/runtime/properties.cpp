// What a device says of itself: from the card's profile, the rest as every card since sm_75 has it.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "core/kernels.h"
#include "runtime/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

constexpr int kRegistersPerBlock = 65536;
constexpr int kMaxGrid = 0x7fffffff;

void fill_identity(cudaDeviceProp& out, int device) {
  std::snprintf(out.name, sizeof out.name, "%s", card().name.c_str());
  device_uuid(device, reinterpret_cast<unsigned char*>(out.uuid.bytes));
  out.major = card().major;
  out.minor = card().minor;
  out.pciBusID = device + 1;
}

void fill_sizes(cudaDeviceProp& out) {
  const CardFacts& facts = card();
  out.totalGlobalMem = facts.total_memory_bytes;
  out.sharedMemPerBlock = facts.shared_memory_per_block_bytes;
  out.sharedMemPerBlockOptin = facts.shared_memory_per_block_optin_bytes;
  out.sharedMemPerMultiprocessor = facts.shared_memory_per_multiprocessor_bytes;
  out.reservedSharedMemPerBlock = reserved_shared_bytes(card());
  out.regsPerBlock = kRegistersPerBlock;
  out.regsPerMultiprocessor = facts.registers_per_multiprocessor;
  out.warpSize = facts.warp_size;
  out.memPitch = kMaxGrid;
  out.maxThreadsPerBlock = kMaxThreadsPerBlock;
  out.maxThreadsDim[0] = out.maxThreadsDim[1] = kMaxThreadsPerBlock;
  out.maxThreadsDim[2] = 64;
  out.maxGridSize[0] = kMaxGrid;
  out.maxGridSize[1] = out.maxGridSize[2] = 65535;
  out.totalConstMem = 65536;
  out.textureAlignment = 512;
  out.texturePitchAlignment = 32;
  out.surfaceAlignment = 512;
  out.multiProcessorCount = facts.multiprocessor_count;
  out.maxThreadsPerMultiProcessor = facts.max_threads_per_multiprocessor;
  out.maxBlocksPerMultiProcessor = facts.max_blocks_per_multiprocessor;
  out.memoryBusWidth = facts.memory_bus_bits;
  out.l2CacheSize = static_cast<int>(facts.l2_cache_bytes);
}

void fill_abilities(cudaDeviceProp& out) {
  out.canMapHostMemory = 1;
  out.concurrentKernels = 1;
  out.ECCEnabled = card().ecc;
  out.asyncEngineCount = 3;
  out.unifiedAddressing = 1;
  out.streamPrioritiesSupported = 1;
  out.globalL1CacheSupported = 1;
  out.localL1CacheSupported = 1;
  out.managedMemory = 1;
  out.concurrentManagedAccess = 1;
  out.computePreemptionSupported = 1;
  out.cooperativeLaunch = 1;
  out.hostRegisterSupported = 1;
  out.memoryPoolsSupported = 1;
  out.clusterLaunch = card().major >= 9;
  out.unifiedFunctionPointers = 1;
}

constexpr cudaDeviceAttr kEveryCardHas[] = {cudaDevAttrGpuOverlap,
                                            cudaDevAttrCanMapHostMemory,
                                            cudaDevAttrConcurrentKernels,
                                            cudaDevAttrUnifiedAddressing,
                                            cudaDevAttrStreamPrioritiesSupported,
                                            cudaDevAttrGlobalL1CacheSupported,
                                            cudaDevAttrLocalL1CacheSupported,
                                            cudaDevAttrManagedMemory,
                                            cudaDevAttrConcurrentManagedAccess,
                                            cudaDevAttrComputePreemptionSupported,
                                            cudaDevAttrCooperativeLaunch,
                                            cudaDevAttrHostRegisterSupported,
                                            cudaDevAttrMemoryPoolsSupported,
                                            cudaDevAttrIpcEventSupport};

// A question that is not listed here is refused, with its number.
constexpr cudaDeviceAttr kNoCardHas[] = {cudaDevAttrIntegrated,
                                         cudaDevAttrComputeMode,
                                         cudaDevAttrKernelExecTimeout,
                                         cudaDevAttrPciDeviceId,
                                         cudaDevAttrPciDomainId,
                                         cudaDevAttrTccDriver,
                                         cudaDevAttrIsMultiGpuBoard,
                                         cudaDevAttrMultiGpuBoardGroupID,
                                         cudaDevAttrHostNativeAtomicSupported,
                                         cudaDevAttrPageableMemoryAccess,
                                         cudaDevAttrPageableMemoryAccessUsesHostPageTables,
                                         cudaDevAttrDirectManagedMemAccessFromHost,
                                         cudaDevAttrCanUseHostPointerForRegisteredMem,
                                         cudaDevAttrGPUDirectRDMASupported,
                                         cudaDevAttrGPUDirectRDMAFlushWritesOptions,
                                         cudaDevAttrMemoryPoolSupportedHandleTypes,
                                         cudaDevAttrSparseCudaArraySupported};

// Attributes that are a property under another name, or none.
std::optional<long long> attribute(cudaDeviceAttr which, const cudaDeviceProp& p) {
  const std::pair<cudaDeviceAttr, long long> properties[] = {
      {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
      {cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0]},
      {cudaDevAttrMaxBlockDimY, p.maxThreadsDim[1]},
      {cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2]},
      {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
      {cudaDevAttrMaxGridDimY, p.maxGridSize[1]},
      {cudaDevAttrMaxGridDimZ, p.maxGridSize[2]},
      {cudaDevAttrMaxSharedMemoryPerBlock, p.sharedMemPerBlock},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, p.sharedMemPerBlockOptin},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, p.sharedMemPerMultiprocessor},
      {cudaDevAttrReservedSharedMemoryPerBlock, p.reservedSharedMemPerBlock},
      {cudaDevAttrTotalConstantMemory, p.totalConstMem},
      {cudaDevAttrWarpSize, p.warpSize},
      {cudaDevAttrMaxPitch, p.memPitch},
      {cudaDevAttrMaxRegistersPerBlock, p.regsPerBlock},
      {cudaDevAttrMaxRegistersPerMultiprocessor, p.regsPerMultiprocessor},
      {cudaDevAttrClockRate, card().clock_khz},
      {cudaDevAttrMemoryClockRate, card().memory_clock_khz},
      {cudaDevAttrGlobalMemoryBusWidth, p.memoryBusWidth},
      {cudaDevAttrL2CacheSize, p.l2CacheSize},
      {cudaDevAttrTextureAlignment, p.textureAlignment},
      {cudaDevAttrTexturePitchAlignment, p.texturePitchAlignment},
      {cudaDevAttrSurfaceAlignment, p.surfaceAlignment},
      {cudaDevAttrAsyncEngineCount, p.asyncEngineCount},
      {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
      {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
      {cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor},
      {cudaDevAttrComputeCapabilityMajor, p.major},
      {cudaDevAttrComputeCapabilityMinor, p.minor},
      {cudaDevAttrPciBusId, p.pciBusID},
      {cudaDevAttrClusterLaunch, p.clusterLaunch},
      {cudaDevAttrEccEnabled, p.ECCEnabled}};
  for (const auto& [attribute, value] : properties)
    if (attribute == which) return value;
  if (std::ranges::find(kEveryCardHas, which) != std::end(kEveryCardHas)) return 1;
  if (std::ranges::find(kNoCardHas, which) != std::end(kNoCardHas)) return 0;
  return std::nullopt;
}

#if PEAKBENCH_CUDA_MAJOR == 12

// The record of CUDA 12 has fields that CUDA 13 left out, so what follows each of them lies
// elsewhere.
struct Block {
  std::size_t first_of_13, first_of_12;
};
constexpr Block kBlocks[] = {
    {0, 0},
    {offsetof(cudaDeviceProp, multiProcessorCount), 388},
    {offsetof(cudaDeviceProp, integrated), 396},
    {offsetof(cudaDeviceProp, maxTexture1D), 408},
    {offsetof(cudaDeviceProp, maxTexture2D), 420},
    {offsetof(cudaDeviceProp, memoryBusWidth), 612},
    {offsetof(cudaDeviceProp, sharedMemPerMultiprocessor), 640},
    {offsetof(cudaDeviceProp, pageableMemoryAccess), 672},
    {offsetof(cudaDeviceProp, sharedMemPerBlockOptin), 696},
    {offsetof(cudaDeviceProp, deviceNumaConfig), 780},  // the end of what both have
};
constexpr std::size_t kBytesOf12 = 1032;
constexpr std::size_t kClockRate = 348, kDeviceOverlap = 384, kMemoryClockRate = 608;

void write_as_the_program_reads(const cudaDeviceProp& properties, void* out) {
  auto* const to = static_cast<char*>(out);
  const auto* const from = reinterpret_cast<const char*>(&properties);
  std::memset(to, 0, kBytesOf12);
  for (std::size_t i = 0; i + 1 < std::size(kBlocks); ++i) {
    const auto& block = kBlocks[i];
    std::memcpy(to + block.first_of_12, from + block.first_of_13,
                kBlocks[i + 1].first_of_13 - block.first_of_13);
  }
  const auto put = [&](std::size_t at, int value) { std::memcpy(to + at, &value, sizeof value); };
  put(kClockRate, card().clock_khz);
  put(kMemoryClockRate, card().memory_clock_khz);
  put(kDeviceOverlap, 1);
}

#else

void write_as_the_program_reads(const cudaDeviceProp& properties, cudaDeviceProp* out) {
  *out = properties;
}

#endif

cudaDeviceProp properties(int device) {
  cudaDeviceProp out;
  std::memset(&out, 0, sizeof out);
  fill_identity(out, device);
  fill_sizes(out);
  fill_abilities(out);
  return out;
}

}  // namespace

PEAKBENCH_ENTRY cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  return entry([&] {
    if (!out) return cudaErrorInvalidValue;
    if (!is_device(device)) return cudaErrorInvalidDevice;
    write_as_the_program_reads(properties(device), out);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  return entry([&] {
    if (!value) return cudaErrorInvalidValue;
    if (!is_device(device)) return cudaErrorInvalidDevice;
    const auto answer = attribute(which, properties(device));
    if (!answer) {
      char name[64];
      std::snprintf(name, sizeof name, "cudaDeviceGetAttribute(%d)", static_cast<int>(which));
      refuse(name);
      return cudaErrorInvalidValue;
    }
    *value = static_cast<int>(std::min<long long>(*answer, 0x7fffffff));
    return cudaSuccess;
  });
}
