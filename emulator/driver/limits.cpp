// Limits of a context, the same ones that the runtime names cudaLimit.
#include "core/limits.h"

#include "driver/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::driver;

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
