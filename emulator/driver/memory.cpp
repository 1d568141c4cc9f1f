// The driver's memory: its own malloc, copies, and virtual memory management.
#include <algorithm>

#include "core/copies.h"
#include "core/own_ledger.h"
#include "driver/entry_points.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::driver;

namespace {

constexpr DeviceEnds kOnto{.to = true}, kOff{.from = true}, kWithin{true, true};

CUresult copy(const CopyCall& call, void* to, const void* from, size_t bytes, DeviceEnds ends) {
  return entry([&] { return error_of(asked_copy(call, to, from, bytes, ends)); });
}

CUresult fill(const CopyCall& call, CUdeviceptr to, std::uint32_t value, unsigned element_bytes,
              size_t count) {
  return entry(
      [&] { return error_of(asked_fill(call, address(to), value, element_bytes, count)); });
}

template <typename Value>
CUresult put(void* out, Value value) {
  *static_cast<Value*>(out) = value;
  return CUDA_SUCCESS;
}

}  // namespace

PEAKBENCH_ENTRY CUresult cuMemAlloc(CUdeviceptr* out, size_t bytes) {
  return entry([&] {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    void* at = nullptr;
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    const auto result = allocate_device(current_device(), bytes, &at);
    *out = number(at);
    return error_of(result);
  });
}

PEAKBENCH_ENTRY CUresult cuMemFree(CUdeviceptr base) {
  return entry([&] { return base ? error_of(release(address(base), false)) : CUDA_SUCCESS; });
}

PEAKBENCH_ENTRY CUresult cuMemAllocHost(void** out, size_t bytes) {
  return entry([&] { return error_of(allocate_pinned(bytes, out)); });
}
PEAKBENCH_ENTRY CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  return entry([&] { return error_of(allocate_pinned(bytes, out)); });
}
PEAKBENCH_ENTRY CUresult cuMemFreeHost(void* base) {
  return entry([&] { return error_of(release(base, true)); });
}

PEAKBENCH_ENTRY CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (!free_bytes || !total_bytes) return CUDA_ERROR_INVALID_VALUE;
  const void* caller = __builtin_return_address(0);
  return entry([&] {
    free_memory_is_read("cuMemGetInfo", caller);
    std::uint64_t free = 0, total = 0;
    memory_info(current_device(), &free, &total);
    *free_bytes = free;
    *total_bytes = total;
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes,
                                              CUdeviceptr pointer) {
  return entry([&] {
    const MemoryPlace place = find_place(address(pointer));
    if (place.kind == MemoryKind::unknown) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = place.base;
    if (bytes) *bytes = place.bytes;
    return CUDA_SUCCESS;
  });
}

// Each in two forms: on the default stream, and on one that is named.
#define COPY(function, To, From, ends)                                                        \
  PEAKBENCH_ENTRY CUresult function(To to, From from, size_t bytes) {                         \
    return copy(PEAKBENCH_CALL(), address(to), address(from), bytes, ends);                   \
  }                                                                                           \
  PEAKBENCH_ENTRY CUresult function##Async(To to, From from, size_t bytes, CUstream stream) { \
    return copy(PEAKBENCH_CALL(stream), address(to), address(from), bytes, ends);             \
  }
COPY(cuMemcpyHtoD, CUdeviceptr, const void*, kOnto)
COPY(cuMemcpyDtoH, void*, CUdeviceptr, kOff)
COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, kWithin)
COPY(cuMemcpy, CUdeviceptr, CUdeviceptr, DeviceEnds{})

#define FILL(function, Element)                                                         \
  PEAKBENCH_ENTRY CUresult function(CUdeviceptr to, Element value, size_t count) {      \
    return fill(PEAKBENCH_CALL(), to, value, sizeof value, count);                      \
  }                                                                                     \
  PEAKBENCH_ENTRY CUresult function##Async(CUdeviceptr to, Element value, size_t count, \
                                           CUstream stream) {                           \
    return fill(PEAKBENCH_CALL(stream), to, value, sizeof value, count);                \
  }
FILL(cuMemsetD8, unsigned char)
FILL(cuMemsetD16, unsigned short)
FILL(cuMemsetD32, unsigned)
PEAKBENCH_ENTRY CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr to, cuuint32_t value,
                                              unsigned) {
  return fill(PEAKBENCH_CALL(stream), to, value, 4, 1);
}

PEAKBENCH_ENTRY CUresult cuPointerGetAttribute(void* out, CUpointer_attribute which,
                                               CUdeviceptr pointer) {
  return entry([&] {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    const MemoryPlace place = find_place(address(pointer));
    // A pointer that CUDA does not know of is an error here, which callers take for "the host's".
    if (place.kind == MemoryKind::unknown) return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        return put(out, static_cast<CUcontext>(nullptr));
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put(out, place.is_locked() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return put(out, pointer);
      case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        return put(out, 0u);
      case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        return put(out, static_cast<unsigned long long>(place.ordinal));
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return put(out, unsigned{place.kind == MemoryKind::managed});
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return put(out, std::max(place.device, 0));
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return put(out, static_cast<CUdeviceptr>(place.base));
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return put(out, static_cast<size_t>(place.bytes));
      case CU_POINTER_ATTRIBUTE_MAPPED:
        return put(out, unsigned{place.kind != MemoryKind::reservation});
      case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return put(out, 0u);
      default:
        break;
    }
    refuse("cuPointerGetAttribute (an attribute)");
    return CUDA_ERROR_NOT_SUPPORTED;
  });
}

PEAKBENCH_ENTRY CUresult cuMemGetAllocationGranularity(size_t* out, const CUmemAllocationProp*,
                                                       CUmemAllocationGranularity_flags) {
  return answer(out, [&] { return kPage; });
}

PEAKBENCH_ENTRY CUresult cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t alignment,
                                             CUdeviceptr, unsigned long long) {
  return entry([&] {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t base = 0;
    const auto result = reserve_addresses(bytes, alignment, &base);
    *out = base;
    return error_of(result);
  });
}

PEAKBENCH_ENTRY CUresult cuMemAddressFree(CUdeviceptr base, size_t bytes) {
  return entry([&] { return error_of(free_addresses(base, bytes)); });
}

PEAKBENCH_ENTRY CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes,
                                     const CUmemAllocationProp* prop, unsigned long long) {
  return entry([&] {
    if (!out || !prop) return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
      refuse("cuMemCreate (memory of the host)");
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!is_device(prop->location.id)) return CUDA_ERROR_INVALID_DEVICE;
    // Sharing with other machines: no emulated card has it, and PyTorch goes on with file
    // descriptors.
    if (prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) return CUDA_ERROR_NOT_SUPPORTED;
    std::uint64_t handle = 0;
    const auto result = create_memory(prop->location.id, bytes, &handle);
    *out = handle;
    return error_of(result);
  });
}

PEAKBENCH_ENTRY CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return entry([&] { return error_of(release_memory(handle)); });
}

PEAKBENCH_ENTRY CUresult cuMemMap(CUdeviceptr base, size_t bytes, size_t offset,
                                  CUmemGenericAllocationHandle handle, unsigned long long) {
  return entry([&] { return error_of(map_memory(base, bytes, offset, handle)); });
}

PEAKBENCH_ENTRY CUresult cuMemUnmap(CUdeviceptr base, size_t bytes) {
  return entry([&] { return error_of(unmap_memory(base, bytes)); });
}

PEAKBENCH_ENTRY CUresult cuMemSetAccess(CUdeviceptr base, size_t, const CUmemAccessDesc*, size_t) {
  return entry([&] {
    return find_place(address(base)).kind == MemoryKind::mapping ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_INVALID_VALUE;
  });
}

PEAKBENCH_ENTRY CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* at) {
  return entry([&] {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    const MemoryPlace place = find_place(at);
    if (place.kind != MemoryKind::mapping) return CUDA_ERROR_INVALID_VALUE;
    *out = place.handle;
    return error_of(retain_memory(place.handle));
  });
}

PEAKBENCH_ENTRY CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp* out, CUmemGenericAllocationHandle handle) {
  return entry([&] {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    int device = 0;
    std::uint64_t bytes = 0;
    const auto result = memory_of_handle(handle, &device, &bytes);
    *out = {};
    out->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    out->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    out->location.id = device;
    return error_of(result);
  });
}
