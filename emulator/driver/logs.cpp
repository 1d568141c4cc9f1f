// The driver's log of errors: nobody writes to it here, so whoever listens hears nothing.
#include "driver/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::driver;

PEAKBENCH_ENTRY CUresult cuLogsRegisterCallback(CUlogsCallback, void*, CUlogsCallbackHandle* out) {
  return entry([&] {
    if (out) *out = static_cast<CUlogsCallbackHandle>(new_handle());
    return CUDA_SUCCESS;
  });
}
PEAKBENCH_ENTRY CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle) { return CUDA_SUCCESS; }
