#include "driver/entry_points.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

// Asking for entry points by name, and the names of errors.

// Where the linker puts the stubs that refuse.
extern "C" __attribute__((weak, visibility("hidden"))) const char __start_peakbench_refused;
extern "C" __attribute__((weak, visibility("hidden"))) const char __stop_peakbench_refused;

namespace {

// As the runtime spells it: cudaDriverEntryPointSymbolNotFound.
constexpr int kFound = 0, kNotFound = 1;

bool is_refused(const void* at) {
  return at >= &__start_peakbench_refused && at < &__stop_peakbench_refused;
}

// Names of functions in their present form carry a number (cuMemAlloc_v2); who asks leaves it out.
// One that is answered is preferred to one that is refused.
void* find(const char* name) {
  // The library itself, whatever else in the process has such names.
  static void* const self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!self) return nullptr;
  void* refused = nullptr;
  for (const char* version : {"_v2", ""}) {
    void* at = dlsym(self, (std::string(name) + version).c_str());
    if (at && !is_refused(at)) return at;
    if (!refused) refused = at;
  }
  return refused;
}

}  // namespace

PEAKBENCH_ENTRY CUresult cuGetProcAddress_v2(const char* name, void** out, int, cuuint64_t,
                                             CUdriverProcAddressQueryResult* status) {
  if (!name || !out) return CUDA_ERROR_INVALID_VALUE;
  *out = find(name);
  if (status) *status = static_cast<CUdriverProcAddressQueryResult>(*out ? kFound : kNotFound);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

namespace {

struct ErrorText {
  CUresult error;
  const char* name;
  const char* text;
};

constexpr const char* kOtherName = "CUDA_ERROR";
constexpr ErrorText kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, kOtherName, "initialization error"},
    {CUDA_ERROR_NO_DEVICE, kOtherName, "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, kOtherName, "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, kOtherName, "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, kOtherName, "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, kOtherName, "named symbol not found"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED",
     "operation not supported (the emulated card does not do this)"},
};

ErrorText text_of(CUresult error) {
  for (const ErrorText& known : kErrors)
    if (known.error == error) return known;
  return {error, kOtherName, "error of the emulated driver"};
}

}  // namespace

PEAKBENCH_ENTRY CUresult cuGetErrorString(CUresult error, const char** out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = text_of(error).text;
  return CUDA_SUCCESS;
}

PEAKBENCH_ENTRY CUresult cuGetErrorName(CUresult error, const char** out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = text_of(error).name;
  return CUDA_SUCCESS;
}

// The driver's log of errors: nobody writes to it here, so whoever listens hears nothing.

using namespace peakbench::emulator;
using namespace peakbench::emulator::driver;

// For generated stubs.
extern "C" __attribute__((visibility("hidden"))) int peakbench_ready() {
  return entry([] { return CUDA_SUCCESS; });
}

PEAKBENCH_ENTRY CUresult cuLogsRegisterCallback(CUlogsCallback, void*, CUlogsCallbackHandle* out) {
  return entry([&] {
    if (out) *out = static_cast<CUlogsCallbackHandle>(new_handle());
    return CUDA_SUCCESS;
  });
}
