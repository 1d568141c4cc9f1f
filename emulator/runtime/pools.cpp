// Memory pools: a device's own and those of the program, and what is taken of them in the order of
// streams (cudaMallocAsync).
#include "core/pools.h"

#include "runtime/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

cudaMemPool_t handle(std::uint64_t pool) { return reinterpret_cast<cudaMemPool_t>(pool); }

cudaError_t allocate(void** out, std::uint64_t bytes, std::uint64_t pool, cudaStream_t stream) {
  if (!out || !stream_exists(number(stream))) return cudaErrorInvalidValue;
  *out = nullptr;
  if (!bytes) return cudaSuccess;
  enter(Fact::pool_growth);
  if (capture_of(number(stream))) enter(Fact::pool_in_capture);
  return error_of(allocate_from_pool(pool, bytes, out));
}

template <typename Work>
cudaError_t with_pool(cudaMemPool_t pool, Work&& work) {
  return entry([&] { return pool_exists(number(pool)) ? work() : cudaErrorInvalidValue; });
}

template <typename Value>
cudaError_t put(void* out, Value value) {
  *static_cast<Value*>(out) = value;
  return cudaSuccess;
}

}  // namespace

PEAKBENCH_ENTRY cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t stream) {
  const void* caller = __builtin_return_address(0);
  return working_entry([&] {
    pool_is_used_by(caller);
    return allocate(out, bytes, current_pool(stream_device(number(stream))), stream);
  });
}

PEAKBENCH_ENTRY cudaError_t cudaMallocFromPoolAsync(void** out, size_t bytes, cudaMemPool_t pool,
                                                    cudaStream_t stream) {
  return with_pool(pool, [&] { return allocate(out, bytes, number(pool), stream); });
}

PEAKBENCH_ENTRY cudaError_t cudaFreeAsync(void* base, cudaStream_t) {
  return entry([&] { return base ? error_of(release(base, false)) : cudaSuccess; });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* out, int device) {
  return answer(device, out, [&] { return handle(default_pool(device)); });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* out, int device) {
  return answer(device, out, [&] { return handle(current_pool(device)); });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return entry([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    return set_current_pool(device, number(pool)) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaMemPoolCreate(cudaMemPool_t* out, const cudaMemPoolProps* props) {
  return entry([&] {
    if (!out || !props || props->allocType != cudaMemAllocationTypePinned)
      return cudaErrorInvalidValue;
    if (props->location.type != cudaMemLocationTypeDevice) {
      refuse("cudaMemPoolCreate (memory of the host)");
      return cudaErrorNotSupported;
    }
    if (!is_device(props->location.id)) return cudaErrorInvalidDevice;
    *out = handle(create_pool(props->location.id, props->maxSize));
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return entry([&] { return destroy_pool(number(pool)) ? cudaSuccess : cudaErrorInvalidValue; });
}

PEAKBENCH_ENTRY cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                                    void* out) {
  return with_pool(pool, [&] {
    const PoolFigures figures = pool_figures(number(pool));
    switch (attribute) {
      case cudaMemPoolAttrReservedMemCurrent:
        return put(out, figures.reserved);
      case cudaMemPoolAttrReservedMemHigh:
        return put(out, figures.peak_reserved);
      case cudaMemPoolAttrUsedMemCurrent:
        return put(out, figures.used);
      case cudaMemPoolAttrUsedMemHigh:
        return put(out, figures.peak_used);
      case cudaMemPoolAttrReleaseThreshold:
        return put(out, release_threshold(number(pool)));
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        return put(out, 1);
      default:
        return cudaErrorInvalidValue;
    }
  });
}

// What is freed may be used again at once, as streams are done with it: how that may come about
// changes nothing.
PEAKBENCH_ENTRY cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                                    void* value) {
  return with_pool(pool, [&] {
    const auto given = [&] { return *static_cast<const std::uint64_t*>(value); };
    const bool is_used = attribute == cudaMemPoolAttrUsedMemHigh;
    switch (attribute) {
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:  // they can be set to zero alone: to what is current
        if (given() != 0) return cudaErrorInvalidValue;
        reset_peak(number(pool), is_used ? &PoolFigures::peak_used : &PoolFigures::peak_reserved,
                   is_used ? &PoolFigures::used : &PoolFigures::reserved);
        return cudaSuccess;
      case cudaMemPoolAttrReleaseThreshold:
        set_release_threshold(number(pool), given());
        return cudaSuccess;
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;
    }
  });
}

PEAKBENCH_ENTRY cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*,
                                                 size_t) {
  return with_pool(pool, [] { return cudaSuccess; });
}

PEAKBENCH_ENTRY cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  return with_pool(pool, [&] {
    trim_pool(number(pool), bytes);
    return cudaSuccess;
  });
}
