// Memory pools (cudaMallocAsync): one a device, which holds exactly what is in use.
#include "runtime/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

// A pool's handle is its device's number plus this.
constexpr std::uint64_t kPools = 0x1e0000000000;

cudaError_t used_by(cudaMemPool_t pool, std::uint64_t* used, std::uint64_t* peak) {
  const auto device = number(pool) - kPools;
  if (!is_device(static_cast<int>(device))) return cudaErrorInvalidValue;
  std::uint64_t free = 0, total = 0;
  memory_info(static_cast<int>(device), &free, &total);
  *used = total - free;
  *peak = peak_used_bytes(static_cast<int>(device));
  return cudaSuccess;
}

}  // namespace

PEAKBENCH_ENTRY cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* out, int device) {
  return entry([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    *out = reinterpret_cast<cudaMemPool_t>(kPools + device);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* out, int device) {
  return cudaDeviceGetDefaultMemPool(out, device);
}

PEAKBENCH_ENTRY cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                                    void* out) {
  return entry([&] {
    std::uint64_t used = 0, peak = 0;
    const cudaError_t error = used_by(pool, &used, &peak);
    if (error != cudaSuccess) return error;
    switch (attribute) {
      case cudaMemPoolAttrReservedMemCurrent:
      case cudaMemPoolAttrUsedMemCurrent:
        *static_cast<std::uint64_t*>(out) = used;
        return cudaSuccess;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:
        *static_cast<std::uint64_t*>(out) = peak;
        return cudaSuccess;
      case cudaMemPoolAttrReleaseThreshold:
        *static_cast<std::uint64_t*>(out) = 0;
        return cudaSuccess;
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        *static_cast<int*>(out) = 1;
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;
    }
  });
}

PEAKBENCH_ENTRY cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return entry([] { return cudaSuccess; });
}
PEAKBENCH_ENTRY cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return entry([] { return cudaSuccess; });
}
PEAKBENCH_ENTRY cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) {
  return entry([] { return cudaSuccess; });
}
