#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/exchange.h"
#include "core/machine.h"
#include "runtime/errors.h"

// Devices: how many, which one, whether they see each other.

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

PEAKBENCH_ENTRY cudaError_t cudaGetDeviceCount(int* count) {
  find_pytorch();
  if (count) *count = ready() == cudaSuccess ? device_count() : 0;
  return entry([&] { return count ? cudaSuccess : cudaErrorInvalidValue; });
}

PEAKBENCH_ENTRY cudaError_t cudaGetDevice(int* device) {
  return answer(device, [&] { return current_device(); });
}

PEAKBENCH_ENTRY cudaError_t cudaSetDevice(int device) {
  return entry([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    set_current_device(device);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return entry([&] { return is_device(device) ? cudaSuccess : cudaErrorInvalidDevice; });
}

PEAKBENCH_ENTRY cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return answer(flags, [&] { return 0; });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceSynchronize() {
  return waiting_entry([] {
    const auto error = error_of(asks_device_in_capture());
    if (error == cudaSuccess) wait_for_everything();
    return error;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaDriverGetVersion(int* version) {
  if (!version) return finish(cudaErrorInvalidValue);
  *version = machine_state() == MachineState::forked ? 0 : driver_cuda_version();
  return cudaSuccess;
}

PEAKBENCH_ENTRY cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!version) return finish(cudaErrorInvalidValue);
  *version = cuda_version(PEAKBENCH_CUDA_MAJOR);
  return cudaSuccess;
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceGetPCIBusId(char* out, int length, int device) {
  return entry([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    std::snprintf(out, length, "0000:%02X:00.0", device + 1);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* bus) {
  return entry([&] {
    if (!device || !bus) return cudaErrorInvalidValue;
    unsigned domain = 0, number = 0;
    if (std::sscanf(bus, "%x:%x", &domain, &number) != 2 ||
        !is_device(static_cast<int>(number) - 1)) {
      return cudaErrorInvalidValue;
    }
    *device = static_cast<int>(number) - 1;
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return entry([&] {
    if (!can) return cudaErrorInvalidValue;
    if (!is_device(device) || !is_device(peer)) return cudaErrorInvalidDevice;
    *can = device != peer && card().peer_access;
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return entry([&] {
    if (!is_device(peer)) return cudaErrorInvalidDevice;
    return card().peer_access && peer != current_device() ? cudaSuccess
                                                          : cudaErrorPeerAccessUnsupported;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute,
                                                      int device, int peer) {
  return entry([&] {
    if (!value) return cudaErrorInvalidValue;
    if (!is_device(device) || !is_device(peer)) return cudaErrorInvalidDevice;
    *value = attribute == cudaDevP2PAttrAccessSupported && device != peer && card().peer_access;
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return entry([&] {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return entry([&] {
    if (!value) return cudaErrorInvalidValue;
    return device_limit(limit, value) ? cudaSuccess : cudaErrorUnsupportedLimit;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return entry(
      [&] { return set_device_limit(limit, value) ? cudaSuccess : cudaErrorUnsupportedLimit; });
}

// Entry points of the driver that are asked for by name.

namespace {

// The stand-in of the driver sits beside this library; it is opened by its SONAME, which the
// preloaded one has.
void* driver_symbol(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return driver ? dlsym(driver, name) : nullptr;
}

using GetProcAddress = int (*)(const char*, void**, int, unsigned long long, int*);

}  // namespace

PEAKBENCH_ENTRY cudaError_t cudaGetDriverEntryPointByVersion(
    const char* symbol, void** out, unsigned version, unsigned long long flags,
    cudaDriverEntryPointQueryResult* status) {
  if (!symbol || !out) return finish(cudaErrorInvalidValue);
  static const auto get = reinterpret_cast<GetProcAddress>(driver_symbol("cuGetProcAddress_v2"));
  *out = nullptr;
  int found = cudaDriverEntryPointSymbolNotFound;
  if (get) get(symbol, out, static_cast<int>(version), flags, &found);
  if (status) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  return cudaSuccess;
}

PEAKBENCH_ENTRY cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** out,
                                                    unsigned long long flags,
                                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, out, CUDART_VERSION, flags, status);
}
