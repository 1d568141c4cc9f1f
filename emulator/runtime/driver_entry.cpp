// Entry points of the driver that are asked for by name.
#include <dlfcn.h>

#include <string>

#include "runtime/errors.h"

using namespace peakbench::emulator::runtime;

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
