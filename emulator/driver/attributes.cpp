#include "driver/attributes.h"

#include <dlfcn.h>

#include "driver/errors.h"

namespace peakbench::emulator::driver {
namespace {

using GetAttribute = int (*)(int*, int, int);

GetAttribute runtime_attribute() {
  static const auto function =
      reinterpret_cast<GetAttribute>(dlsym(RTLD_DEFAULT, "cudaDeviceGetAttribute"));
  return function;
}

}  // namespace

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

}  // namespace peakbench::emulator::driver
