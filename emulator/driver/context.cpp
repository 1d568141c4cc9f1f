#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/exchange.h"
#include "core/machine.h"
#include "driver/entry_points.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::driver;

namespace {

using GetAttribute = int (*)(int*, int, int);

GetAttribute runtime_attribute() {
  static const auto function =
      reinterpret_cast<GetAttribute>(dlsym(RTLD_DEFAULT, "cudaDeviceGetAttribute"));
  return function;
}

// Attributes of a device, answered by the runtime's stand-in: the numbers are the same in both.
CUresult device_attribute(int* out, CUdevice_attribute which, int device) {
  switch (which) {
    // The driver alone is asked these.
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *out = 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED:
      *out = 0;
      return CUDA_SUCCESS;
    default:
      break;
  }
  const GetAttribute ask = runtime_attribute();
  return ask ? static_cast<CUresult>(ask(out, which, device)) : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

// Limits of a context, the same ones that the runtime names cudaLimit.

PEAKBENCH_ENTRY CUresult cuCtxGetLimit(size_t* out, CUlimit limit) {
  return entry([&] {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    return device_limit(limit, out) ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
  });
}

PEAKBENCH_ENTRY CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return entry(
      [&] { return set_device_limit(limit, value) ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT; });
}

// Initialisation, devices and contexts. A device has one context, its primary one, and it is always
// there.

namespace {

// A context's handle is its device's number plus this.
constexpr std::uint64_t kContexts = 0x1d0000000000;

CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(kContexts + device); }

int device_of(CUcontext context) {
  const auto device = number(context) - kContexts;
  return device < static_cast<std::uint64_t>(device_count()) ? static_cast<int>(device) : -1;
}

CUresult make_current(CUcontext context) {
  if (!context) return CUDA_SUCCESS;  // the runtime binds the device's own again
  if (device_of(context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  set_current_device(device_of(context));
  return CUDA_SUCCESS;
}

thread_local CUcontext pushed_over = nullptr;

}  // namespace

PEAKBENCH_ENTRY CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = driver_cuda_version();
  return CUDA_SUCCESS;
}

PEAKBENCH_ENTRY CUresult cuDeviceGetCount(int* count) {
  return answer(count, [&] { return device_count(); });
}

PEAKBENCH_ENTRY CUresult cuDeviceGet(CUdevice* out, int ordinal) {
  return answer(ordinal, out, [&] { return ordinal; });
}

PEAKBENCH_ENTRY CUresult cuDeviceGetName(char* out, int length, CUdevice device) {
  return entry([&] {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(out, length, "%s", card().name.c_str());
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuDeviceGetUuid(CUuuid* out, CUdevice device) {
  return entry([&] {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    device_uuid(device, reinterpret_cast<unsigned char*>(out->bytes));
    return CUDA_SUCCESS;
  });
}

// Its name without a number, by which programs of CUDA 12 ask: without partitions of a card, the
// same.
#undef cuDeviceGetUuid
PEAKBENCH_ALSO(cuDeviceGetUuid, cuDeviceGetUuid_v2);

PEAKBENCH_ENTRY CUresult cuDeviceTotalMem(size_t* out, CUdevice device) {
  return answer(device, out, [&] { return card().total_memory_bytes; });
}

PEAKBENCH_ENTRY CUresult cuDeviceGetPCIBusId(char* out, int length, CUdevice device) {
  return entry([&] {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(out, length, "0000:%02X:00.0", device + 1);
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return entry([&] {
    if (!can) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device) || !is_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer && card().peer_access;
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuDeviceGetAttribute(int* out, CUdevice_attribute which, CUdevice device) {
  return entry([&] {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    return device_attribute(out, which, device);
  });
}

PEAKBENCH_ENTRY CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  return answer(device, out, [&] { return context_of(device); });
}

PEAKBENCH_ENTRY CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return entry([&] {
    if (!active) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (flags) *flags = 0;
    *active = 1;
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuCtxGetCurrent(CUcontext* out) {
  return answer(out, [&] { return context_of(current_device()); });
}

PEAKBENCH_ENTRY CUresult cuCtxSetCurrent(CUcontext context) {
  return entry([&] { return make_current(context); });
}

PEAKBENCH_ENTRY CUresult cuCtxPushCurrent(CUcontext context) {
  return entry([&] {
    pushed_over = context_of(current_device());
    return make_current(context);
  });
}

PEAKBENCH_ENTRY CUresult cuCtxPopCurrent(CUcontext* out) {
  return entry([&] {
    if (out) *out = context_of(current_device());
    const CUcontext before = pushed_over;
    pushed_over = nullptr;
    return make_current(before);
  });
}

PEAKBENCH_ENTRY CUresult cuCtxGetDevice(CUdevice* out) {
  return answer(out, [&] { return current_device(); });
}

PEAKBENCH_ENTRY CUresult cuCtxSynchronize() {
  return entry([] {
    if (meets_device_assert(current_device())) return CUDA_ERROR_ASSERT;
    const auto error = error_of(asks_device_in_capture());
    if (error == CUDA_SUCCESS) wait_for_everything();
    return error;
  });
}
